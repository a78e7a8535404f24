// Package forward sends requests of hosts to upstreams and returns the answers. It admits calls in
// order, translates them between the eras, and repeats those that certainly did not run. It
// accesses sessions through the interface Sessions.
package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/taskowner"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A Route is the destination of a host's request, with options.
type Route struct {
	Upstream  *lazy.Upstream
	Params    json.RawMessage
	arguments json.RawMessage // the part of params that is not read on the way, nil if it is not known
	Link      Link            // over which the request came; nil for a host
	borrowed  bool            // params are part of the host's line, until the request is handled
	Task      bool            // params ask for a task
	AsText    bool            // a failure of dynmcp is a tool result, for the model to read
	Whole     bool            // the result is for a program: it is not shortened
	Scoped    bool            // the host's URI has the server in it, and so have those of the result
	retry     bool            // it certainly did not run the first time
	opened    bool            // the requestState in params is the upstream's own
	rounds    int             // how often it was repeated with answers of the host

	Surface string        // how the tool is called, "" for other requests
	Tool    *catalog.Tool // the called tool, nil for other requests
	Input   Shower        // shows the schema to a model whose input did not fit; may be nil
	Changed []string      // changes that made the input fit the tool's schema

	Kept json.RawMessage // a copy of the tool's arguments for extensions, nil if none needs it
}

// A Shower returns the input schema of a tool for a model, "" if it cannot be shown.
type Shower interface{ ShowInput(*catalog.Tool) string }

// SetParams sets the params. Their arguments are not read on the way.
func (to *Route) SetParams(params wire.Object) {
	to.Params, to.arguments = params.Text, params.Known.In(params.Text)
}

func (to *Route) object() wire.Object { return wire.ObjectOf(to.Params, to.arguments) }

// An Env is shared by all calls.
type Env struct {
	call.Env
	Fleet       *fleet.Fleet
	TaskOwners  *taskowner.Owners
	Observation observe.Reporter
	Sessions
}

// Sessions are the sessions of calls, with what the aggregator knows of them.
type Sessions interface {
	// Fail answers a request that could not be forwarded; asText makes a failure of dynmcp a
	// text for a model.
	Fail(s *sessions.Session, r *host.Request, err error, asText bool)
	// FailOrLogIn is Fail, or it offers the host the missing login and calls again after it.
	// params are those for the upstream.
	FailOrLogIn(s *sessions.Session, r *host.Request, params json.RawMessage, err error, asText bool, again func())
	// Check returns an error if a call must not be sent over a connection. waited is true if the
	// call waited for it: the upstream may have listed changes since.
	Check(c *Call, conn *upstream.Conn, waited bool) error
	// CheckPage returns an error if the answer to a read is the page of a view, and not as it was approved.
	CheckPage(c *Call, conn *upstream.Conn, result json.RawMessage) error
	// Explain adds texts for the model to the result of a call, ExplainError to an upstream's
	// error.
	Explain(c *Call, outline *wire.Outline, result json.RawMessage) json.RawMessage
	ExplainError(c *Call, err error) error
	// ReplyShaped answers a call with its result, shaped by the config of the tool.
	ReplyShaped(c *Call, r *host.Request, result json.RawMessage)
}

// A Link is the origin of another replica's requests, which all go over one connection.
type Link interface {
	Connection() *upstream.Conn
	// Answered receives the answer to a call.
	Answered(c *Call, result json.RawMessage, err error)
	// End reports that a request has ended whose call has no answer.
	End()
}

// A Call is a host's request on its way to an upstream and back.
type Call struct {
	call.Flight
	Env        *Env
	Server     *fleet.Endpoint
	Route      Route
	rootsAsked *ask.Question    // question to its host, for which the call waits
	expired    <-chan time.Time // since it first waited for a limit: nil if it did not, or has no limit
	began      time.Time        // set if there is an observer
	sent       time.Time        // the same
}

// Dispatch sends a request to an upstream, which it starts if necessary, and answers it with the
// upstream's answer.
func (env *Env) Dispatch(s *sessions.Session, r *host.Request, to Route) {
	u, err := env.Fleet.For(s, to.Upstream)
	if err != nil {
		env.Fail(s, r, err, to.AsText)
		return
	}
	to.Upstream = u
	if r.Era == transports.Stateless {
		var done bool
		if to, done = env.resume(s, r, to); done {
			return
		}
	}
	c, err := env.newCall(s, r, to)
	if err != nil {
		env.Fail(s, r, err, to.AsText)
		return
	}
	c.SendOver(r, nil, nil)
}

// Pass forwards a request from a link to the link's upstream, unchanged.
func (env *Env) Pass(s *sessions.Session, r *host.Request, to Route) error {
	c, err := env.newCall(s, r, to)
	if err != nil {
		return err
	}
	c.Timeout = new(time.Duration) // the other replica limits it
	c.SendOver(r, nil, nil)
	return nil
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

// newCall returns a call, unless too much memory is held for its host.
func (env *Env) newCall(s *sessions.Session, r *host.Request, to Route) (*Call, error) {
	to.borrowed = r.Method == "tools/call"
	c := &Call{Env: env, Server: env.Fleet.Of(to.Upstream), Route: to}
	if !c.Begin(&env.Env, c, s, r, len(to.Params)) {
		full := fmt.Errorf("requests and answers of %.1f MB are held, and with this call of %.1f MB more than hosts may have of \"max_held_bytes\", %.1f MB",
			megabytes(env.Budget.Total()), megabytes(int64(len(to.Params))), megabytes(env.Budget.Max()))
		return nil, &transports.Failure{Upstream: to.Upstream.Server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
			Cause: full, Hint: `call again when other calls have been answered, or raise "max_held_bytes" in "gateway"`}
	}
	c.Method, c.Params, c.NoToken, c.Peer, c.Done = r.Method, to.Params, r.Meta == nil, c, c.Answered
	if to.Tool != nil {
		c.Timeout = to.Tool.Timeout
	}
	if env.Observation.Enabled() {
		c.began = time.Now()
		c.sent = c.began
	}
	if env.Observation.KeepsArguments() {
		c.clone()
	}
	return c, nil
}

// SendOver sends the request over conn, which release releases, if its tool is unchanged since the
// session was shown it. A nil conn means the connection that admit returns, now or later.
// Conn.Start may call answered before it returns.
func (c *Call) SendOver(r *host.Request, conn *upstream.Conn, release func()) {
	waited := conn != nil
	if !waited {
		var admitted bool
		if conn, release, admitted = c.admit(r); !admitted {
			return
		}
	} else if !c.began.IsZero() {
		c.sent = time.Now()
	}
	if err := c.Env.Check(c, conn, waited); err != nil {
		release()
		c.failUnsent(r, err)
		return
	}
	if !conn.Copies() || conn.Era() != r.Era || r.Era == transports.Stateless { // its result may have a state bound to them
		c.clone()
	}
	params, err := c.translateEra(conn, r.Era)
	if err != nil {
		release()
		c.failUnsent(r, err)
		return
	}
	c.Params, c.Arguments = params.Text, params.Known.In(params.Text)
	if !conn.Copies() { // of others no answer has a stream of its own
		c.MayRead = c.ReserveAnswer
	}
	if c.Session.Shared && c.Session.Persistent {
		c.Session.Connections.Use(c.Route.Upstream.Server.Name, conn)
	}
	if !c.BeginSending(r, conn, release) {
		return
	}
	c.Server.Calls.Add(&c.Flight)
	conn.Start(&c.Call)
	c.Withdraw() // if the host's cancel came before conn knew the call
}

// clone copies the params, if they are still part of the host's line.
func (c *Call) clone() {
	if c.Route.borrowed {
		params := c.Route.object()
		params.Text = bytes.Clone(params.Text)
		c.Route.SetParams(params)
		c.Route.borrowed, c.Params = false, c.Route.Params
	}
}

// Send implements call.Owner.
func (c *Call) Send(r *host.Request) { c.SendOver(r, nil, nil) }

// Ended implements call.Owner.
func (c *Call) Ended() (others bool) { return c.Server.Calls.Remove(&c.Flight) > 0 && c.Session.Shared }

// Upstream implements call.Owner.
func (c *Call) Upstream() any { return c.Server }

// Notify implements transports.Peer: it delivers the progress of this call, or messages on its own
// stream, which are only for its host.
func (c *Call) Notify(method string, params json.RawMessage) {
	c.Server.NotifyIn(&c.Flight, method, params)
}

// Request implements transports.Peer: a server request on the call's own stream is for the host
// that made the call.
func (c *Call) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	return c.Server.RequestIn(ctx, &c.Flight, method, params)
}
