// Package observe reports ended calls to observers and to the log, and assigns references to
// failures whose cause a host may not read.
package observe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// An Observer receives events, for metrics and for pages. Its functions are called synchronously, so
// they must not block, and must not keep their arguments.
type Observer struct {
	// Call is called when a call to an upstream has ended.
	Call func(CallEnd)
	// Session is called when a host has connected, or is gone.
	Session func(SessionInfo, bool)
	// Dropped is called for a notification that was dropped because its host reads too slowly,
	// or its server sends too many.
	Dropped func(SessionInfo)
	// Builtin is called for a call that one of dynmcp's own tools has answered.
	Builtin func(BuiltinEnd)
	// Wants reports whether calls are to be reported at present, and whether they must keep a
	// copy of their params until they have ended. Nil means calls without params.
	Wants func() (calls, params bool)
	// Close is called after the last event.
	Close func()
}

// Join returns an observer that notifies two others, either of which may be nil.
func Join(a, b *Observer) *Observer {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return &Observer{
		Call:    func(end CallEnd) { a.Call(end); b.Call(end) },
		Session: func(s SessionInfo, opened bool) { a.Session(s, opened); b.Session(s, opened) },
		Dropped: func(s SessionInfo) { a.Dropped(s); b.Dropped(s) },
		Builtin: func(end BuiltinEnd) { a.Builtin(end); b.Builtin(end) },
		Wants: func() (calls, params bool) {
			calls, params = a.wants()
			callsToo, paramsToo := b.wants()
			return calls || callsToo, params || paramsToo
		},
		Close: func() { a.Close(); b.Close() },
	}
}

func (o *Observer) wants() (calls, params bool) {
	if o == nil || o.Wants == nil {
		return o != nil, false
	}
	return o.Wants()
}

// A BuiltinEnd is the end of a call that one of dynmcp's own tools has answered.
type BuiltinEnd struct {
	From       SessionInfo
	Surface    string
	Tool       string
	Began, End time.Time
	Failed     bool
	Arguments  json.RawMessage // valid only during the call, as Result is
	Result     json.RawMessage
	Queries    int // of a search
	Shown      int // definitions that the answer shows
}

// A CallEnd is the end of a host's call to an upstream.
type CallEnd struct {
	Session     string
	Upstream    string
	Method      string
	Tool        string // the upstream's name; "" for other methods
	TraceParent string // of the call's _meta, "" if absent (W3C Trace Context)
	Began, End  time.Time
	Sent        time.Time          // when the upstream was ready to take it; zero if the call was not sent
	Kind        string             // "ok", "tool_error", "error" of the upstream, "cancelled", or the kind of dynmcp's failure
	Outcome     transports.Outcome // whether it ran
	Asked       int                // bytes of the params
	Answered    int                // bytes of the result

	From    SessionInfo     // whose call it is
	Surface string          // how a tool was called
	Rule    int             // of the policy that refused the call, otherwise 0
	Params  json.RawMessage // if Observer.Wants requests them; they must not change
	Result  json.RawMessage // valid only during the call
}

// A SessionInfo identifies a session.
type SessionInfo struct {
	ID     string
	User   string // "" if users are not distinguished
	Server string // the only server of the session, "" for all
	Host   string // the name that it reports, "" if unknown

	// Replica reports that the session belongs to another replica that uses the server here. An
	// Observer is not notified of such sessions or of their calls.
	Replica bool
}

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
}

// A Reporter reports calls to the observer and the log.
type Reporter struct {
	*Observer // may be nil
	Log       *slog.Logger
}

// Enabled reports whether calls are reported.
func (o Reporter) Enabled() bool {
	calls, _ := o.wants()
	return calls || o.Log.Enabled(context.Background(), slog.LevelDebug)
}

// KeepsParams reports whether calls are to keep a copy of their params.
func (o Reporter) KeepsParams() bool {
	_, params := o.wants()
	return params
}

// Ended reports a call, whose names may be a host's own.
func (o Reporter) Ended(end CallEnd) {
	for _, name := range []*string{&end.Upstream, &end.Method, &end.Tool, &end.TraceParent} {
		*name = display.Label(*name)
	}
	if o.Log.Enabled(context.Background(), slog.LevelDebug) { // computing the values costs allocations for each call
		o.Log.Debug("call", "session", end.Session, "upstream", end.Upstream, "method", end.Method, "tool", end.Tool, "kind", end.Kind,
			"outcome", end.Outcome, "took", end.End.Sub(end.Began), "asked", end.Asked, "answered", end.Answered)
	}
	if o.Observer != nil {
		o.Call(end)
	}
}

// KindOf returns the name of a failure in metrics.
func KindOf(f *transports.Failure) string {
	return cmp.Or(kinds[f.Code], strconv.FormatInt(f.Code, 10))
}

// A BuiltinCall is an observed call of one of dynmcp's own tools. Its methods do nothing on nil, which
// stands for a call that is not observed.
type BuiltinCall struct {
	reporter Reporter
	end      BuiltinEnd
	shown    atomic.Int32 // definitions
	passed   atomic.Bool  // it has called other tools, which are reported themselves
}

// BeginBuiltin returns the call of one of dynmcp's own tools, to be reported when it is answered, nil
// without an observer.
func (o Reporter) BeginBuiltin(surface, tool string, arguments json.RawMessage) *BuiltinCall {
	if calls, _ := o.wants(); !calls {
		return nil
	}
	c := &BuiltinCall{reporter: o, end: BuiltinEnd{Surface: surface, Tool: tool, Arguments: bytes.Clone(arguments), Began: time.Now()}}
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
func (c *BuiltinCall) End(from func() SessionInfo, result json.RawMessage, err error) {
	if c == nil || c.passed.Swap(true) {
		return
	}
	end := c.end
	end.From, end.End, end.Result, end.Shown = from(), time.Now(), result, int(c.shown.Load())
	end.Failed = err != nil || string(wire.Get(result, "isError")) == "true"
	c.reporter.Observer.Builtin(end)
}
