// Package event has what happens in a run: calls, messages, sessions of hosts, states of servers. The
// aggregator reports events. The record of calls, metrics, traces and pages are observers.
package event

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/transports"
)

// A Call is the end of a host's call to an upstream, or to one of dynmcp's own tools.
type Call struct {
	From        Session
	Surface     string // how a tool was called
	Upstream    string // "" for dynmcp's own tools
	Method      string
	Tool        string // the upstream's name; "" for other methods
	TraceParent string // of the call's _meta, "" if absent (W3C Trace Context)
	Began, End  time.Time
	Sent        time.Time          // when the upstream was ready to take it; zero if the call was not sent
	Kind        string             // "ok", "tool_error", "error" of the upstream, "cancelled", or the kind of dynmcp's failure
	Outcome     transports.Outcome // whether it ran
	Credential  string             // what of its user the server was called with, by name; "" for what all users share
	Rule        int                // of the policy that refused the call, otherwise 0
	Asked       int                // bytes of the params
	Answered    int                // bytes of the result
	Queries     int                // of a search
	Shown       int                // definitions that the answer of one of dynmcp's own tools shows

	Arguments json.RawMessage // if Observer.Wants requests them; they must not change
	Result    json.RawMessage // valid only during the call of the observer
}

// Own reports whether the call was to one of dynmcp's own tools.
func (c *Call) Own() bool { return c.Upstream == "" && c.Tool != "" }

// ByServer reports whether the upstream answered the call, with a result or an error.
func (c *Call) ByServer() bool {
	return !c.Own() && (c.Kind == "ok" || c.Kind == "tool_error" || c.Kind == "error")
}

// A Session identifies a host's session.
type Session struct {
	ID     string
	User   string // "" if users are not distinguished
	Server string // the only server of the session, "" for all
	Host   string // the name that it reports, "" if unknown
	Share  string // whose share of what hosts share it takes

	// Replica reports that the session belongs to another replica that uses the server here. An
	// Observer is not notified of such sessions or of their calls.
	Replica bool
}

// Failed is the State of a server whose last start failed and that will be tried again.
const Failed = "failed"

// A Server is the state of an upstream.
type Server struct {
	Name      string    `json:"name"`
	State     string    `json:"state"` // a lazy.State, or Failed
	Lazy      bool      `json:"lazy"`
	Transport string    `json:"transport"`
	PID       int       `json:"pid,omitempty"`      // of its process, 0 if there is none
	Since     time.Time `json:"since,omitzero"`     // when it was connected; zero if it is not connected
	FailedAt  time.Time `json:"failed_at,omitzero"` // when starts began to fail; zero if the last one succeeded
	Starts    int64     `json:"starts"`             // number of connections
	Failed    int64     `json:"starts_failed"`      // number of failed starts
	Protocol  string    `json:"protocol,omitempty"` // protocol version of the connection
	Tools     int       `json:"tools"`              // number of known tools
	InFlight  int       `json:"in_flight"`          // calls of hosts in flight, also at upstreams of one user or session
	Waiting   int       `json:"waiting"`            // calls that wait because of a limit of the server
	Err       string    `json:"error,omitempty"`    // why it could not be started, or was lost
	Sandbox   *Sandbox  `json:"sandbox,omitempty"`  // nil without one
}

// A Sandbox describes what limits the program of a server.
type Sandbox struct {
	Missing    []string `json:"missing,omitempty"`      // parts that the system cannot limit
	ProxyBytes int64    `json:"proxy_bytes"`            // that passed its proxy, both ways
	Denied     int      `json:"refused"`                // connections, by the proxy
	LastDenied []string `json:"last_refused,omitempty"` // reasons of the last refusals, oldest first
}

// Redact returns a server whose texts a function has made safe.
func (s Server) Redact(safe func(string) string) Server {
	s.Err = safe(s.Err)
	if s.Sandbox != nil {
		box := *s.Sandbox
		box.LastDenied = slices.Clone(box.LastDenied)
		for i, why := range box.LastDenied {
			box.LastDenied[i] = safe(why)
		}
		s.Sandbox = &box
	}
	return s
}

// Tools are the tools of an upstream that differ from those it listed before, by name.
type Tools struct {
	Upstream                string
	Added, Removed, Changed []string
}

// A Failure is one whose cause was kept from a host, by its reference.
type Failure struct {
	Reference string    `json:"reference"`
	Upstream  string    `json:"upstream"`
	At        time.Time `json:"at"`   // when a host first got the reference
	Text      string    `json:"text"` // the failure for the user of this machine
}

// An Observer receives events. Its methods are called synchronously, so they must not block,
// and must not keep their arguments.
type Observer interface {
	// Called is called when a call has ended.
	Called(Call)
	// Opened is called when a host has connected, Closed when it is gone.
	Opened(Session)
	Closed(Session)
	// Dropped is called for a notification that was dropped because its host reads too slowly,
	// or its server sends too many.
	Dropped(Session)
	// Wants reports whether calls are to be reported at present, and whether they must keep a
	// copy of their arguments until they have ended.
	Wants() (calls, arguments bool)
	// End is called after the last event.
	End()
}

// A ToolsObserver is an Observer that also hears of changed tools.
type ToolsObserver interface {
	Observer
	// Listed is called when an upstream lists other tools than before, in this run or the last.
	Listed(Tools)
}

// None is an Observer that hears nothing.
type None struct{}

func (None) Called(Call)                    {}
func (None) Opened(Session)                 {}
func (None) Closed(Session)                 {}
func (None) Dropped(Session)                {}
func (None) Wants() (calls, arguments bool) { return false, false }
func (None) End()                           {}

// Observers passes events to several observers. Without any it wants none.
type Observers []Observer

func (all Observers) each(f func(Observer)) {
	for _, o := range all {
		f(o)
	}
}

func (all Observers) Called(c Call)     { all.each(func(o Observer) { o.Called(c) }) }
func (all Observers) Opened(s Session)  { all.each(func(o Observer) { o.Opened(s) }) }
func (all Observers) Closed(s Session)  { all.each(func(o Observer) { o.Closed(s) }) }
func (all Observers) Dropped(s Session) { all.each(func(o Observer) { o.Dropped(s) }) }
func (all Observers) End()              { all.each(Observer.End) }

func (all Observers) Listed(t Tools) {
	for _, o := range all {
		if o, ok := o.(ToolsObserver); ok {
			o.Listed(t)
		}
	}
}

// HearListings reports whether an observer hears of changed tools.
func (all Observers) HearListings() bool {
	return slices.ContainsFunc(all, func(o Observer) bool { _, ok := o.(ToolsObserver); return ok })
}

func (all Observers) Wants() (calls, arguments bool) {
	for _, o := range all {
		c, a := o.Wants()
		calls, arguments = calls || c, arguments || a
	}
	return calls, arguments
}
