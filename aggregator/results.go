package aggregator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/guarding"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/input"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Notes for the model are added to results here, and results are limited as the config says.
// Everything else stays unchanged.

// metaChanged is the member of a result's _meta that lists what use_tool changed in
// the input.
const metaChanged = "dynmcp/changedInput"

// What follows implements forward.Sessions.

func (a run) Fail(s *sessions.Session, r *host.Request, err error, asText bool) {
	request{a.of(s), r}.fail(err, asText)
}

func (a run) FailOrLogIn(s *sessions.Session, r *host.Request, params json.RawMessage, err error, asText bool, again func()) {
	request{a.of(s), r}.failOrLogIn(params, err, asText, again)
}

func (a run) Check(c *forward.Call, conn *upstream.Conn, waited bool) error {
	return a.judge.Ready(a.scopes.Of(c.Session), c, conn, waited)
}

// Explain returns the result of a call with notes: that the input was changed, the input
// schema if the server reports invalid input, that the tool is not as approved, that the server has
// another process.
func (a run) Explain(c *forward.Call, outline *wire.Outline, result json.RawMessage) json.RawMessage {
	result = a.opts.Extensions.Show(a.of(c.Session), extension.Answer{Method: c.Method, Server: c.Route.Upstream.Server.Name, Tool: c.Route.Tool, Surface: c.Route.Surface, Arguments: c.Route.Kept}, result)
	if c.Route.Changed != nil {
		if changed, err := json.Marshal(c.Route.Changed); err == nil {
			result = transports.SetMeta(result, metaChanged, changed)
		}
	}
	if c.Route.Input != nil && results.ReportsInvalidInput(result, outline) {
		if schema := schemaOnce(c); schema != "" {
			result = results.Append(result, schema)
		}
	}
	note := guarding.Note(c.Route.Tool, c.Session.Shown.First)
	if c.Route.Changed != nil && !c.Route.Whole { // a program reads _meta
		result = results.Append(result, input.Note(c.Route.Changed))
	}
	if server := c.Route.Upstream.Server.Name; c.Method == "tools/call" && c.Session.Connections.Moved(server) {
		note = strings.TrimPrefix(note+"\n"+fmt.Sprintf(movedNote, server), "\n")
	}
	switch {
	case note == "":
		return result
	case c.Route.Whole:
		return transports.SetMeta(result, surface.MetaNote, wire.Quote(note))
	}
	return results.Append(result, note)
}

// movedNote tells a model that the state of a server is gone.
const movedNote = "[dynmcp: this call ran in another process of %s than the last one: what earlier calls left in its memory is not there.]"

// ExplainError is Explain for an upstream's own error.
func (a run) ExplainError(c *forward.Call, err error) error {
	var failure *transports.Failure
	var theirs *wire.Error
	if c.Route.Input == nil || errors.As(err, &failure) || !errors.As(err, &theirs) || theirs.Code != wire.CodeInvalidParams {
		return err
	}
	schema := schemaOnce(c)
	if schema == "" {
		return err
	}
	shown := *theirs
	if shown.Message += "\n" + schema; shown.Raw != nil {
		shown.Raw = wire.Set(shown.Raw, "message", wire.Quote(shown.Message))
	}
	return &shown
}

// schemaOnce returns the text that shows the tool's input schema, "" if this session was
// shown it before.
func schemaOnce(c *forward.Call) string {
	text := c.Route.Input.ShowInput(c.Route.Tool)
	if text == "" || !c.Session.Shown.First("schema: "+c.Route.Tool.Name) {
		return ""
	}
	return text
}

// quickResult is the longest result, in bytes, that is shaped on the reader's goroutine.
const quickResult = 32 << 10

// ReplyShaped answers a call with its result, limited as the config says. What is structured for a view
// of the tool is no model's, and stays whole.
func (a run) ReplyShaped(c *forward.Call, r *host.Request, result json.RawMessage) {
	t, readsOn := c.Route.Tool, a.of(c.Session).Surface().ReadsOn
	var structured json.RawMessage
	if t.HasView && c.Session.Able().ShowsViews() {
		if structured = bytes.Clone(wire.Get(result, "structuredContent")); structured != nil {
			result = wire.Delete(result, "structuredContent")
		}
	}
	reply := func(shaped json.RawMessage) {
		if structured != nil {
			shaped = wire.Set(shaped, "structuredContent", structured)
		}
		r.Reply(shaped, nil)
	}
	if len(result) <= quickResult {
		if shaped, cut := results.Shape(result, t, readsOn != ""); !cut || readsOn == "" {
			reply(shaped)
			return
		}
	}
	result = bytes.Clone(result) // it is part of the upstream's line
	a.work.Answer(r, func() { reply(a.of(c.Session).shorten(result, t, readsOn)) })
}

// shorten returns a result limited as the config says for its tool. If it was cut, it ends
// with a note on how to read on.
func (s session) shorten(result json.RawMessage, t *catalog.Tool, readsOn string) json.RawMessage {
	shaped, cut := results.Shape(result, t, readsOn != "")
	if !cut || readsOn == "" {
		return shaped
	}
	handle, err := s.agg.results.Add(s.User, s.agg.opts.Replica, t.MaxOutputChars, result)
	if err != nil { // shaped says that it was cut
		s.agg.log.Warn("a result that was cut is not kept", "upstream", t.Server, "tool", t.Upstream, "err", err)
		return shaped
	}
	return results.Append(shaped, results.Note(result, readsOn, handle))
}

// Result returns a result that is kept here for a user, and the limit of its tool, in
// characters; ok is false if there is none. Other replicas call it by Cluster.ResultOf.
func (a *Aggregator) Result(user, handle string) (result json.RawMessage, limit int, ok bool) {
	return a.results.Get(user, handle)
}
