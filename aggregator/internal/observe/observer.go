// Package observe reports ended calls to observers and the log, and assigns references to
// failures whose cause a host may not read.
package observe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// kinds are the names of dynmcp's failures in metrics.
var kinds = map[int64]string{
	transports.CodeStartFailed:  "start_failed",
	transports.CodeExited:       "exited",
	transports.CodeTimeout:      "timeout",
	transports.CodeProtocol:     "protocol",
	transports.CodeUnreachable:  "unreachable",
	transports.CodeAuthRequired: "auth_required",
	transports.CodeRateLimited:  "rate_limited",
	transports.CodeBackingOff:   "backing_off",
	transports.CodeTooLarge:     "too_large",
	transports.CodeOverloaded:   "overloaded",
	transports.CodeShuttingDown: "shutting_down",
	transports.CodeNoResources:  "no_resources",
	transports.CodeNoHost:       "no_host",
	transports.CodeChanged:      "changed",
	transports.CodeNotPlaced:    "not_placed",
	transports.CodeNotApproved:  "not_approved",
	transports.CodeDenied:       "denied",
	transports.CodeNotListed:    "not_listed",
	transports.CodeAmbiguous:    "ambiguous",
}

// A Reporter reports events to observers, and calls to the log too.
type Reporter struct {
	event.Observers
	Log *slog.Logger
}

// Enabled reports whether calls are reported.
func (o Reporter) Enabled() bool {
	calls, _ := o.Wants()
	return calls || o.Log.Enabled(context.Background(), slog.LevelDebug)
}

// Listed tells observers how the tools of an upstream differ from those that it had.
func (o Reporter) Listed(server string, before, now []definition.Tool) {
	changed, known := event.Tools{Upstream: server}, map[string]string{}
	for _, t := range before {
		known[t.Name] = t.Digest
	}
	for _, t := range now {
		switch digest, ok := known[t.Name]; {
		case !ok:
			changed.Added = append(changed.Added, t.Name)
		case digest != t.Digest:
			changed.Changed = append(changed.Changed, t.Name)
		}
		delete(known, t.Name)
	}
	changed.Removed = slices.Sorted(maps.Keys(known))
	if len(changed.Added)+len(changed.Removed)+len(changed.Changed) > 0 {
		o.Observers.Listed(changed)
	}
}

// KeepsArguments reports whether calls are to keep a copy of their arguments.
func (o Reporter) KeepsArguments() bool {
	_, arguments := o.Wants()
	return arguments
}

// Ended reports a call, whose names may be a host's own.
func (o Reporter) Ended(end event.Call) {
	for _, name := range []*string{&end.Upstream, &end.Method, &end.Tool, &end.TraceParent} {
		*name = display.Label(*name)
	}
	if o.Log.Enabled(context.Background(), slog.LevelDebug) { // computing the values costs allocations for each call
		o.Log.Debug("call", "session", end.From.ID, "upstream", end.Upstream, "method", end.Method, "tool", end.Tool, "kind", end.Kind,
			"outcome", end.Outcome, "took", end.End.Sub(end.Began), "asked", end.Asked, "answered", end.Answered)
	}
	o.Called(end)
}

// KindOf returns the name of a failure in metrics.
func KindOf(f *transports.Failure) string {
	return cmp.Or(kinds[f.Code], strconv.FormatInt(f.Code, 10))
}

// A BuiltinCall is an observed call of one of dynmcp's own tools. Its methods do nothing on nil, which
// stands for a call that is not observed.
type BuiltinCall struct {
	reporter Reporter
	end      event.Call
	shown    atomic.Int32 // definitions
	passed   atomic.Bool  // it has called other tools, which are reported themselves
}

// BeginBuiltin returns the call of one of dynmcp's own tools, to be reported when it is answered, nil
// without an observer.
func (o Reporter) BeginBuiltin(surface, tool string, arguments json.RawMessage) *BuiltinCall {
	if calls, _ := o.Wants(); !calls {
		return nil
	}
	c := &BuiltinCall{reporter: o, end: event.Call{
		Surface: surface, Method: "tools/call", Tool: tool, Kind: "ok", Outcome: transports.Executed,
		Asked: len(arguments), Arguments: bytes.Clone(arguments), Began: time.Now(),
	}}
	switch query := wire.Get(arguments, "query"); {
	case query == nil:
	case query[0] == '[':
		for range wire.Elements(query) {
			c.end.Queries++
		}
	case string(query) != `""` && string(query) != "null":
		c.end.Queries = 1
	}
	return c
}

// Show counts a definition in the answer.
func (c *BuiltinCall) Show() {
	if c != nil {
		c.shown.Add(1)
	}
}

// Pass records that the call has called other tools.
func (c *BuiltinCall) Pass() {
	if c != nil {
		c.passed.Store(true)
	}
}

// End reports the call and its answer, once.
func (c *BuiltinCall) End(from func() event.Session, result json.RawMessage, err error) {
	if c == nil || c.passed.Swap(true) {
		return
	}
	end := c.end
	end.From, end.End, end.Result, end.Answered, end.Shown = from(), time.Now(), result, len(result), int(c.shown.Load())
	if err != nil || string(wire.Get(result, "isError")) == "true" {
		end.Kind = "tool_error"
	}
	c.reporter.Called(end)
}
