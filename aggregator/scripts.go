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
	s, cfg := c.session, c.agg.config()
	var servers []string
	for _, server := range s.View().Servers() {
		servers = append(servers, server.Name)
	}
	s.agg.scripts.Start(&scripts.Caller{
		Session: s.Session, Request: c.r, Params: bytes.Clone(c.params), Config: cfg, Servers: servers,
		Reply: func(result json.RawMessage) { c.Reply(result, nil) },
		Send:  func(r *host.Request, by *surface.Target) { innerRequest{request{s, r}}.handleOfScript(by) },
		Part:  func(r *host.Request) surface.Session { return surfaceCall{request: request{s, r}} },
		Shorten: func(result json.RawMessage, most int) json.RawMessage {
			return results.OfTexts(result, func(texts json.RawMessage) json.RawMessage {
				return s.shorten(texts, &catalog.Tool{MaxOutputChars: most}, s.Surface().ReadsOn)
			})
		},
	}, source, args)
}

// handleOfScript answers a request that a script makes inside that of its host. Its tools are
// called by a target.
func (in innerRequest) handleOfScript(by *surface.Target) {
	if by == nil {
		in.handle(in.r)
		return
	}
	if in.r.Era == transports.Stateless && in.resumes(func() { in.handleOfScript(by) }) {
		return
	}
	if c := in.toolCall(by); c != nil {
		c.send()
	}
}
