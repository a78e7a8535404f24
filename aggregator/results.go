package aggregator

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// What a model needs to hear about its call beside the upstream's answer is added here, and
// results are limited as the config wants. Everything else stays the bytes that came.

// metaChanged is the member of a result's _meta that says what use_tool changed in
// the input.
const metaChanged = "dynmcp/changedInput"

// explained returns the result of a call with what is to be said of it: that the input was
// changed, and the input schema where the server complains.
func (c *forwardedCall) explained(outline *wire.Outline, result json.RawMessage) json.RawMessage {
	if c.route.changed != nil {
		if changed, err := json.Marshal(c.route.changed); err == nil {
			result = transports.SetMeta(result, metaChanged, changed)
		}
	}
	if c.route.showInput == nil || !results.Complains(result, outline) {
		return result
	}
	if schema := c.schemaOnce(); schema != "" {
		return results.Append(result, schema)
	}
	return result
}

// explainedError is explained for an upstream's own error.
func (c *forwardedCall) explainedError(err error) error {
	var failure *transports.Failure
	var theirs *wire.Error
	if c.route.showInput == nil || errors.As(err, &failure) || !errors.As(err, &theirs) || theirs.Code != wire.CodeInvalidParams {
		return err
	}
	schema := c.schemaOnce()
	if schema == "" {
		return err
	}
	shown := *theirs
	if shown.Message += "\n" + schema; shown.Raw != nil {
		shown.Raw = wire.Set(shown.Raw, "message", wire.Quote(shown.Message))
	}
	return &shown
}

// schemaOnce returns the text that shows the tool's input schema, "" if this session has
// seen it.
func (c *forwardedCall) schemaOnce() string {
	text := c.route.showInput(c.route.tool)
	if text == "" || !c.session.shown.firstSchema(c.route.tool.Name) {
		return ""
	}
	return text
}

// quickResult is the longest result, in bytes, that is shaped on the reader's goroutine.
const quickResult = 32 << 10

// replyShaped answers a call with its result, as the config wants the tool's results.
func (c *forwardedCall) replyShaped(r *host.Request, t *catalog.Tool, result json.RawMessage) {
	room := 0
	readsOn := c.session.surface().ReadsOn
	if readsOn != "" {
		room = results.NoteRoom
	}
	if len(result) <= quickResult {
		if shaped, cut := results.Shape(result, t, room); !cut || room == 0 {
			r.Reply(shaped, nil)
			return
		}
	}
	result = bytes.Clone(result) // it is part of the upstream's line
	c.agg.work.Answer(r, func() {
		shaped, cut := results.Shape(result, t, room)
		if cut && readsOn != "" {
			handle, err := c.agg.results.Add(c.session.principal.name, c.agg.opts.Replica, t.MaxOutputChars, result)
			if err == nil {
				shaped = results.Append(shaped, results.Note(result, readsOn, handle))
			} else { // the answer says that it is not all
				c.agg.log.Warn("a result that was cut is not kept", "upstream", t.Server, "tool", t.Upstream, "err", err)
			}
		}
		r.Reply(shaped, nil)
	})
}

// Result returns a result that is kept here for a user, and the limit of its tool, in
// characters; ok is false if there is none, or none any more. It is for other replicas,
// which ask by Options.ResultOf.
func (a *Aggregator) Result(user, handle string) (result json.RawMessage, limit int, ok bool) {
	return a.results.Get(user, handle)
}
