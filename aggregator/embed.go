package aggregator

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Load starts a server unless it runs, and returns when it is listed. The error is a
// *transports.Failure if the server failed, or ctx's error if ctx ended first. A host must
// have introduced itself before, because servers are told its capabilities. The server runs
// until the aggregator closes, even if its entry has an idle timeout.
func (a *Aggregator) Load(ctx context.Context, server string) error {
	u := a.set.Get(server)
	if u == nil {
		return &UnknownServerError{Name: server}
	}
	_, _, err := u.Load(ctx) // not released: it stays
	return err
}

// An UnknownServerError says that a config has no such server, or has it
// disabled.
type UnknownServerError struct{ Name string }

func (e *UnknownServerError) Error() string { return "unknown server: " + e.Name }

// View returns the current catalogue.
func (a *Aggregator) View() *catalog.View {
	views := a.catalog.Views()
	if a.config().UseTool == schema.UseToolSplit {
		views = views.Split()
	}
	return views[catalog.NoTasks]
}

// Request makes a request of the program itself, and returns the result unchanged; by says how it calls a
// tool. A server that is not running is started first. A tool that fails, or cannot be called, returns a
// result with isError and a nil error. An error is a JSON-RPC error of the server or of dynmcp, or that
// of ctx, whose end cancels the request.
//
// The program declares no capabilities to servers, unless a host has declared some before.
func (a *Aggregator) Request(ctx context.Context, by *surface.Target, method string, params json.RawMessage) (json.RawMessage, error) {
	return a.requestAs(ctx, "", by, method, params)
}

func (a *Aggregator) requestAs(ctx context.Context, user string, by *surface.Target, method string, params json.RawMessage) (json.RawMessage, error) {
	s := a.openSession(Identity{User: user, Local: true})
	s.Host = noHost{}
	s.declare(json.RawMessage(`{}`), transports.Handshake)
	defer s.end()

	type answer struct {
		result json.RawMessage
		err    error
	}
	answered := make(chan answer, 1)
	own := innerParams(params, nil)
	r := &host.Request{
		ID: json.RawMessage(`1`), Method: method, Params: own, Meta: bytes.Clone(wire.Get(own, "_meta")), Era: transports.Handshake, Peer: noHost{}, Number: a.lastRequest.Add(1),
		Respond: func(_ *host.Request, result json.RawMessage, err error) { answered <- answer{bytes.Clone(result), err} },
	}
	defer context.AfterFunc(ctx, func() { r.Cancel(nil) })()
	s.agg.fleet.Begin(s.Session)
	request{s, r}.handleInner(by)
	select {
	case got := <-answered:
		return got.result, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.ctx.Done():
		return nil, context.Cause(a.ctx)
	}
}

// noHost is the host of a program's own calls. It drops notifications and refuses requests.
type noHost struct{}

// Notify implements transports.Peer.
func (noHost) Notify(string, json.RawMessage) {}

// Request implements transports.Peer.
func (noHost) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return ask.NoHost("there is no host to ask")
}
