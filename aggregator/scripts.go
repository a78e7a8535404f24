package aggregator

import (
	"bytes"
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/aggregator/internal/scripts"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// RunScript implements surface.Session.
func (c surfaceCall) RunScript(source string, args []string) {
	s, cfg := c.session, c.session.agg.config()
	var servers []string
	for _, server := range s.View().Servers() {
		servers = append(servers, server.Name)
	}
	s.agg.scripts.Start(&scripts.Caller{
		Session: s.Session, Request: c.request, Params: bytes.Clone(c.params), Config: cfg, Servers: servers,
		Reply: func(result json.RawMessage) { c.Reply(result, nil) },
		Send:  func(r *host.Request, by *surface.Target) { handleOfScript(s, r, by) },
		Part:  func(r *host.Request) surface.Session { return surfaceCall{session: s, request: r} },
		Shorten: func(result json.RawMessage, most int) json.RawMessage {
			return results.OfTexts(result, func(texts json.RawMessage) json.RawMessage {
				return shorten(s, texts, &catalog.Tool{MaxOutputChars: most}, s.Surface().ReadsOn)
			})
		},
	}, source, args)
}

// handleOfScript answers a request that a script makes inside that of its host. Its tools are
// called by a target.
func handleOfScript(s session, r *host.Request, by *surface.Target) {
	if by == nil {
		s.handle(r)
		return
	}
	again := func() { handleOfScript(s, r, by) }
	if r.Era == transports.Stateless && (s.resumeOffer(r, again) || resumePermit(s, r)) {
		return
	}
	if c := readToolCall(s, r, by); c != nil {
		c.send()
	}
}
