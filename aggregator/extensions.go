package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A session is the host that extensions know.
var _ extension.Host = session{}

// Declares implements extension.Host.
func (s session) Declares(id string) bool {
	return wire.IsObject(wire.Get(s.Declaration().Capabilities, "extensions", id))
}

// ListsDirectly implements extension.Host.
func (s session) ListsDirectly() bool { return s.Surface().Direct }

// OnThisMachine implements extension.Host.
func (s session) OnThisMachine() bool { return s.MayLogIn }

// Companion implements extension.Host.
func (s session) Companion() net.Conn {
	ours, theirs := net.Pipe()
	id := s.Identity
	id.Shared, id.Persistent = true, true
	s.agg.work.Go(func() {
		defer ours.Close()
		if err := s.agg.serveLines(s.agg.ctx, host.NewConn(ours, &s.agg.cork), id); err != nil && s.agg.ctx.Err() == nil {
			s.agg.log.Debug("a companion of a host has ended", "err", err)
		}
	})
	return theirs
}

// sealedFor returns the session in what is sealed.
func (s session) sealedFor() string {
	if s.Persistent {
		return "session " + s.ID + "\n"
	}
	return "user " + s.User + "\n"
}

// Seal implements extension.Host.
func (s session) Seal(purpose, plain string) string {
	return s.agg.opts.Keys.SealText(purpose, []byte(s.sealedFor()+plain))
}

// Open implements extension.Host.
func (s session) Open(purpose, sealed string) (plain string, ok bool) {
	text, err := s.agg.opts.Keys.OpenText(purpose, sealed)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(text), s.sealedFor())
}

// readOwn answers with a resource that an extension has.
func (q request) readOwn(own extension.Resource) {
	q.r.CopyParams()
	q.agg.work.AnswerWithin(q.r, func(ctx context.Context) { q.r.Reply(own.Read(ctx, q)) })
}

// Request implements extension.Requester.
func (q request) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	type answer struct {
		result json.RawMessage
		err    error
	}
	answered := make(chan answer, 1)
	q.handle(q.r.Inner(method, innerParams(params, q.r.Params), func(result json.RawMessage, err error) {
		answered <- answer{bytes.Clone(result), err}
	}))
	select {
	case got := <-answered:
		return got.result, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readExtensionCall reads a call of a tool that an extension has added. It returns the call of the
// upstream's tool that this means, or nil if it is refused.
func (c *toolCall) readExtensionCall(means *extension.Call) *toolCall {
	if means.Refusal != nil {
		c.r.Reply(nil, transports.InvalidParams("%s: %v", c.Name, means.Refusal))
		return nil
	}
	c.By = &surface.Target{
		Surface: means.Surface, Verbatim: means.Input == nil, Program: means.ByView,
		Way: extensionWay{server: means.Server, tool: means.Tool, byView: means.ByView},
	}
	c.Input = means.Input
	if c.Name = means.Server + "/" + means.Tool; c.IsSingleServer() {
		c.Name = means.Tool
	}
	return c
}

// An extensionWay calls one tool by the server's own name.
type extensionWay struct {
	surface.AnyTool
	server, tool string
	byView       bool // a view of the server calls, no model
}

func (w extensionWay) Find(v *catalog.View, _ string) (*catalog.Tool, string) {
	return v.Upstream(w.server, w.tool), w.server
}

func (w extensionWay) Unknown(*catalog.View, string) string {
	return fmt.Sprintf("%s has no tool %q", w.server, w.tool)
}

func (w extensionWay) Reject(t *catalog.Tool) string {
	switch {
	case w.byView && !t.ForViews():
		return fmt.Sprintf("the tool %q of %s is not for views", w.tool, w.server)
	case !w.byView && t.OnlyViews:
		return fmt.Sprintf("the tool %q of %s is only for views", w.tool, w.server)
	}
	return ""
}

// Found implements surface.Session.
func (c *toolCall) Found(queries []string, server string) []string {
	return c.agg.opts.Extensions.Found(c.session, queries, server)
}

// Resource implements surface.Session.
func (c *toolCall) Resource(name string) (uri string, ok bool) {
	return c.agg.opts.Extensions.Shows(c.session, name)
}
