// Package observe tells observers and the log of calls that have ended, and names failures
// whose cause a host may not read.
package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"strconv"
	"time"

	"github.com/dynmcp/dynmcp/transports"
)

// An Observer is told what happens, for metrics and for pages. Its functions are called
// where it happens, so they must not block, and keep nothing of what they are given.
type Observer struct {
	// Call is told of a call that was for an upstream, when it has ended.
	Call func(CallEnd)
	// Session is told that a host has connected, or is gone.
	Session func(SessionInfo, bool)
	// Dropped is told of a notification that a host read too slowly for.
	Dropped func(SessionInfo)
	// Own is told of a call that a tool of ours has answered by itself. It may be nil.
	Own func(OwnEnd)
	// Wants reports whether calls are to be told of at present, and whether they are to keep
	// a copy of their params until they have ended. Nil is calls without params.
	Wants func() (calls, params bool)
	// Close is called when nothing more will be told. It may be nil.
	Close func()
}

// Join returns an observer that tells two others, of which either may be nil.
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
		Own: both(a.Own, b.Own, func(one, two func(OwnEnd)) func(OwnEnd) {
			return func(end OwnEnd) { one(end); two(end) }
		}),
		Wants: func() (calls, params bool) {
			calls, params = a.wants()
			callsToo, paramsToo := b.wants()
			return calls || callsToo, params || paramsToo
		},
		Close: both(a.Close, b.Close, func(one, two func()) func() { return func() { one(); two() } }),
	}
}

func (o *Observer) wants() (calls, params bool) {
	if o == nil || o.Wants == nil {
		return o != nil, false
	}
	return o.Wants()
}

// both returns one function of two of which either may be nil.
func both[F any](a, b F, join func(a, b F) F) F {
	switch {
	case reflect.ValueOf(a).IsNil():
		return b
	case reflect.ValueOf(b).IsNil():
		return a
	}
	return join(a, b)
}

// An OwnEnd is a call that a tool of ours has answered by itself.
type OwnEnd struct {
	From       SessionInfo
	Surface    string
	Tool       string
	Began, End time.Time
	Failed     bool
	Arguments  json.RawMessage // lent, as Result is
	Result     json.RawMessage
	Queries    int // of a search
	Shown      int // definitions that the answer shows
}

// A CallEnd is a call of a host that was for an upstream, and has ended.
type CallEnd struct {
	Session     string
	Upstream    string
	Method      string
	Tool        string // by the upstream's name; "" of other methods
	TraceParent string // of the call's _meta, "" if absent (W3C Trace Context)
	Began, End  time.Time
	Sent        time.Time          // when the upstream was there to take it; zero of a call that was not sent
	Kind        string             // "ok", "tool_error", "error" of the upstream, "cancelled", or what a failure of ours is
	Outcome     transports.Outcome // whether it ran
	Asked       int                // bytes of the params
	Answered    int                // bytes of the result

	From    SessionInfo     // whose call it is
	Surface string          // how a tool was called
	Rule    int             // of the policy that refused the call, 0 of any other
	Params  json.RawMessage // where Observer.Wants asks for them; they stay as they are
	Result  json.RawMessage // lent
}

// A SessionInfo says whose session it is.
type SessionInfo struct {
	ID     string
	User   string // "" where users are not told apart
	Server string // the one that it is about, "" is all
	Host   string // what it calls itself, "" where that is not known

	// Replica says that it is no host, but another replica that uses the server here. An
	// Observer is not told of those, nor of their calls, which are counted there.
	Replica bool
}

// kinds are what failures of ours are called where they are counted.
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
}

// An Reporter tells the observer and the log of calls.
type Reporter struct {
	*Observer // may be nil
	Log       *slog.Logger
}

// Enabled reports whether somebody is told of each call.
func (o Reporter) Enabled() bool {
	calls, _ := o.wants()
	return calls || o.Log.Enabled(context.Background(), slog.LevelDebug)
}

// KeepsParams reports whether calls are to keep a copy of their params.
func (o Reporter) KeepsParams() bool {
	_, params := o.wants()
	return params
}

// TellsOwn reports whether the observer is told of calls of tools of ours.
func (o Reporter) TellsOwn() bool {
	calls, _ := o.wants()
	return calls && o.Own != nil
}

// Ended tells of a call.
func (o Reporter) Ended(end CallEnd) {
	if o.Log.Enabled(context.Background(), slog.LevelDebug) { // making the values costs each call allocations
		o.Log.Debug("call", "session", end.Session, "upstream", end.Upstream, "method", end.Method, "tool", end.Tool, "kind", end.Kind,
			"outcome", end.Outcome, "took", end.End.Sub(end.Began), "asked", end.Asked, "answered", end.Answered)
	}
	if o.Observer != nil {
		o.Call(end)
	}
}

// KindOf says how a failure is counted.
func KindOf(f *transports.Failure) string {
	return cmp.Or(kinds[f.Code], strconv.FormatInt(f.Code, 10))
}
