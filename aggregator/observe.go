package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
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
	// Message is told of each message from a host, or to it, which may come in pieces. It
	// may be nil.
	Message func(s SessionInfo, fromHost bool, pieces [][]byte)
}

// A CallEnd is a call of a host that was for an upstream, and has ended.
type CallEnd struct {
	Session     string
	Upstream    string
	Method      string
	Tool        string // by the upstream's name; "" of other methods
	TraceParent string // of the call's _meta, "" where there is none (W3C Trace Context)
	Began, End  time.Time
	Sent        time.Time          // when the upstream was there to take it; zero of a call that was not sent
	Kind        string             // "ok", "tool_error", "error" of the upstream, "cancelled", or what a failure of ours is
	Outcome     transports.Outcome // whether it ran
	Asked       int                // bytes of the params
	Answered    int                // bytes of the result
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

func (s *session) info() SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := SessionInfo{ID: s.id, User: s.principal.name, Server: s.only, Host: s.client, Replica: s.replica}
	if s.replica {
		info.User, info.Host = strings.TrimPrefix(info.User, "\x00"+s.id), "another replica of dynmcp"
	}
	return info
}

// observed sets what a conversation has to tell the observer of.
func (s *session) observed(opts host.Options) host.Options {
	if o := s.agg.opts.Observe; o != nil {
		opts.Dropped = func() { o.Dropped(s.info()) }
		if o.Message != nil {
			opts.Observe = func(fromHost bool, pieces ...[]byte) { o.Message(s.info(), fromHost, pieces) }
		}
	}
	return opts
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
}

// An observation tells the observer and the log of calls.
type observation struct {
	*Observer // may be nil
	log       *slog.Logger
}

// enabled reports whether somebody is told of each call.
func (o observation) enabled() bool {
	return o.Observer != nil || o.log.Enabled(context.Background(), slog.LevelDebug)
}

// ended tells of a call.
func (o observation) ended(end CallEnd) {
	if o.log.Enabled(context.Background(), slog.LevelDebug) { // making the values costs each call allocations
		o.log.Debug("call", "session", end.Session, "upstream", end.Upstream, "method", end.Method, "tool", end.Tool, "kind", end.Kind,
			"outcome", end.Outcome, "took", end.End.Sub(end.Began), "asked", end.Asked, "answered", end.Answered)
	}
	if o.Observer != nil {
		o.Call(end)
	}
}

// observeRefusal tells of a request that failed before it became a call of an upstream,
// such as one whose server cannot be started.
func (s *session) observeRefusal(r *host.Request, err error) {
	failure, ok := errors.AsType[*transports.Failure](err)
	if !ok || r.Counted || !s.agg.observation.enabled() {
		return
	}
	now := time.Now()
	s.agg.observation.ended(CallEnd{
		Session: s.id, Upstream: failure.Upstream, Method: r.Method, Began: now, End: now,
		Kind: kindOf(failure), Outcome: failure.Outcome, Asked: len(r.Params),
	})
}

// kindOf says how a failure is counted.
func kindOf(f *transports.Failure) string {
	return cmp.Or(kinds[f.Code], strconv.FormatInt(f.Code, 10))
}

// observe tells who wants to know that the call has ended.
func (c *forwardedCall) observe(outline *wire.Outline, result json.RawMessage, err error) {
	if !c.agg.observation.enabled() {
		return
	}
	r := c.HostRequest()
	r.Counted = true
	end := CallEnd{
		Session:  c.session.id,
		Upstream: c.route.upstream.Server.Name,
		Method:   c.Method,
		Began:    c.began,
		End:      time.Now(),
		Sent:     c.sent,
		Kind:     "ok",
		Outcome:  transports.Executed,
		Asked:    len(c.route.params),
		Answered: len(result),
	}
	if c.route.tool != nil {
		end.Tool = c.route.tool.Upstream
	}
	end.TraceParent, _ = wire.Text(wire.Get(r.Meta, "traceparent"))
	cancelled := c.IsCancelled()
	var failure *transports.Failure
	switch {
	case cancelled && err != nil:
		end.Kind, end.Outcome = "cancelled", transports.Unknown
	case errors.As(err, &failure):
		end.Kind, end.Outcome = kindOf(failure), failure.Outcome
		if failure.Outcome == transports.NotSent {
			end.Sent = time.Time{}
		}
	case err != nil:
		end.Kind = "error"
	case c.Method == "tools/call" && string(outline.Get(result, "isError")) == "true":
		end.Kind = "tool_error"
	}
	c.agg.observation.ended(end)
}

// Failed is the state of an upstream whose last start failed: lazy tells it from the
// others by that alone, and tries again.
const Failed lazy.State = "failed"

// An UpstreamInfo says how an upstream is.
type UpstreamInfo struct {
	Name      string
	State     lazy.State
	Lazy      bool
	Transport string
	PID       int       // 0 where there is no process
	Since     time.Time // when it was connected, zero while it is not
	Starts    int64     // how often it was
	Failed    int64     // starts that failed
	FailedAt  time.Time // when they began to fail, zero where the last one did not
	Protocol  string    // the version it speaks, while it is connected
	Tools     int       // that are known of it
	InFlight  int       // calls of hosts that it has to answer, also one that a user or a session has for itself
	Waiting   int       // calls that wait for those, because of max_calls
	Err       string    // why it could not be started, or was lost
}

// A Status says how a run is.
type Status struct{ agg *Aggregator }

// Status returns how the run is when its methods are called.
func (a *Aggregator) Status() Status { return Status{a} }

// Upstreams says how the upstreams of the config are, in its order.
func (st Status) Upstreams() []UpstreamInfo {
	a := st.agg
	view := a.catalog.View()
	inFlight := map[string]int{}
	a.peers.Range(func(_, value any) bool {
		p := value.(*peer)
		for _, c := range p.calls.all() {
			if !c.session.replica { // which is a call of a host there
				inFlight[p.upstream.Server.Name]++
			}
		}
		return true
	})
	var all []UpstreamInfo
	for _, u := range a.set.All() {
		p, status := a.peerOf(u), u.Status()
		info := UpstreamInfo{
			Name:      u.Server.Name,
			State:     status.State,
			Lazy:      u.Server.Lazy(),
			Transport: string(u.Server.Transport),
			Starts:    p.record.starts.Load(),
			Failed:    status.Failed,
			FailedAt:  status.FailedAt,
			InFlight:  inFlight[u.Server.Name],
			Waiting:   a.records.waiting(u.Server.Name),
		}
		if known, ok := view.Server(u.Server.Name); ok && (known.Loaded || !info.Lazy) {
			info.Tools = len(view.ServerTools(u.Server.Name))
		}
		if !status.FailedAt.IsZero() && (status.State == lazy.Idle || status.State == lazy.Lost) {
			info.State = Failed
		}
		if conn := u.Conn(); conn != nil {
			info.PID, info.Since, info.Protocol = conn.PID(), time.Unix(0, p.since.Load()), conn.ServerInfo().ProtocolVersion
		} else if status.Err != nil {
			info.Err, _, _ = strings.Cut(status.Err.Error(), "\n")
		}
		all = append(all, info)
	}
	return all
}

// Sessions says whose sessions there are, oldest first, also those of other replicas.
func (st Status) Sessions() []SessionInfo {
	var all []SessionInfo
	for _, s := range st.agg.sessions.All() {
		all = append(all, s.info())
	}
	return slices.Clip(all)
}
