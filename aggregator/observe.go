package aggregator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

type (
	// An Observer is told what happens, for metrics and for pages.
	Observer = observe.Observer
	// A CallEnd is a call of a host that was for an upstream, and has ended.
	CallEnd = observe.CallEnd
	// A BuiltinEnd is a call that a tool of ours has answered by itself.
	BuiltinEnd = observe.BuiltinEnd
	// A SessionInfo says whose session it is.
	SessionInfo = observe.SessionInfo
)

// JoinObservers returns an observer that tells two others, of which either may be nil.
func JoinObservers(a, b *Observer) *Observer { return observe.Join(a, b) }

// observeRefusal tells of a request that failed before it became a call of an upstream,
// such as one whose server cannot be started.
func (q request) observeRefusal(err error) {
	failure, ok := errors.AsType[*transports.Failure](err)
	if !ok || q.r.Counted || !q.agg.observation.Enabled() {
		return
	}
	now := time.Now()
	q.agg.observation.Ended(observe.CallEnd{
		Session: q.ID, Upstream: failure.Upstream, Method: q.r.Method, Began: now, End: now,
		Kind: observe.KindOf(failure), Outcome: failure.Outcome, Asked: len(q.r.Params), From: q.Info(),
	})
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
	Process   upstream.Process // zero if absent
	Since     time.Time        // when it was connected, zero while it is not
	Starts    int64            // how often it was
	Failed    int64            // starts that failed
	FailedAt  time.Time        // when they began to fail, zero where the last one did not
	Protocol  string           // the version it speaks, while it is connected
	Tools     int              // that are known of it
	InFlight  int              // calls of hosts that it has to answer, also one that a user or a session has for itself
	Waiting   int              // calls that wait for those, because of max_calls
	Err       string           // why it could not be started, or was lost
}

// A Status says how a run is.
type Status struct{ agg *Aggregator }

// Status returns how the run is when its methods are called.
func (a *Aggregator) Status() Status { return Status{a} }

// Profile returns the profile of the config, "" where it is whole.
func (st Status) Profile() string { return st.agg.config().Profile }

// Memory returns how many bytes are held for hosts, and the maximum.
func (st Status) Memory() (bytes, limit int64) {
	budget := st.agg.calls.Budget
	return budget.Total(), budget.Max()
}

// Upstreams says how the upstreams of the config are, in its order.
func (st Status) Upstreams() []UpstreamInfo {
	a := st.agg
	view := a.catalog.View()
	inFlight := map[string]int{}
	a.fleet.Endpoints.Range(func(_, value any) bool {
		p := value.(*fleet.Endpoint)
		for _, c := range p.Calls.All() {
			if !c.Session.Replica { // which is a call of a host there
				inFlight[p.Upstream.Server.Name]++
			}
		}
		return true
	})
	var all []UpstreamInfo
	for _, u := range a.set.All() {
		p, status := a.fleet.Of(u), u.Status()
		info := UpstreamInfo{
			Name:      u.Server.Name,
			State:     status.State,
			Lazy:      u.Server.Lazy(),
			Transport: string(u.Server.Transport),
			Starts:    p.Record.Starts.Load(),
			Failed:    status.Failed,
			FailedAt:  status.FailedAt,
			InFlight:  inFlight[u.Server.Name],
			Waiting:   a.fleet.Records.Waiting(u.Server.Name),
		}
		if known, ok := view.Server(u.Server.Name); ok && (known.Loaded || !info.Lazy) {
			info.Tools = len(view.ServerTools(u.Server.Name))
		}
		if !status.FailedAt.IsZero() && (status.State == lazy.Idle || status.State == lazy.Lost) {
			info.State = Failed
		}
		if conn := u.Conn(); conn != nil {
			info.Process, info.Since, info.Protocol = conn.Process(), time.Unix(0, p.Since.Load()), conn.ServerInfo().ProtocolVersion
		} else if status.Err != nil {
			info.Err, _, _ = strings.Cut(status.Err.Error(), "\n")
		}
		all = append(all, info)
	}
	return all
}

// Sessions says whose sessions there are, oldest first, also those of other replicas.
func (st Status) Sessions() []observe.SessionInfo {
	var all []observe.SessionInfo
	for _, s := range st.agg.sessions.All() {
		all = append(all, s.Info())
	}
	return slices.Clip(all)
}

// Failures are the last failures whose cause hosts were not told, oldest first.
func (st Status) Failures() []observe.FailureInfo {
	return st.agg.references.All()
}

// reserved returns an error as the session's host may read it. Only the user of this
// machine and other replicas are told what a server printed and where it is.
func (s session) reserved(err error) error {
	if s.Local || s.Replica {
		return err
	}
	failure, ok := errors.AsType[*transports.Failure](err)
	if !ok {
		return err
	}
	evicted, ok := errors.AsType[*lazy.EvictedError](err)
	if !ok {
		return s.agg.references.Reserve(failure)
	}
	shown := *evicted
	shown.Err = s.agg.references.Reserve(failure)
	return &shown
}

// Stderr returns the last lines that a server wrote to stderr, as it runs or as it failed; ""
// where there are none. The secrets of the config are not in them.
func (st Status) Stderr(server string) string {
	u := st.agg.set.Get(server)
	if u == nil {
		return ""
	}
	if conn := u.Conn(); conn != nil {
		return conn.Stderr()
	}
	if failure, ok := errors.AsType[*transports.Failure](u.Status().Err); ok {
		return failure.Stderr
	}
	return ""
}

// Start starts a server unless it runs, without waiting for the end of a pause. Nobody uses
// it then, so that an idle timeout ends it.
func (st Status) Start(ctx context.Context, server string) error {
	u := st.agg.set.Get(server)
	if u == nil {
		return &UnknownServerError{Name: server}
	}
	_, release, err := u.Load(ctx)
	if err == nil {
		release()
	}
	return err
}

// Stop has the processes of a server end when their calls have ended. Its next use starts it
// again.
func (st Status) Stop(server string) error {
	if st.agg.set.Get(server) == nil {
		return &UnknownServerError{Name: server}
	}
	for _, u := range st.agg.set.Everything() {
		if conn := u.Conn(); conn != nil && u.Server.Name == server {
			u.Retire(conn)
		}
	}
	return nil
}

// A Question is a call that a person is asked about.
type Question = permit.Waiting

// Questions returns the calls that the policy has persons asked about, and that no host has
// answered, the oldest first. Hosts of the stateless era answer with another request: their
// calls do not wait.
func (st Status) Questions() []Question { return st.agg.permits.Waiting() }

// Answer answers a question in the place of its host. session allows the tool for the session.
func (st Status) Answer(id string, yes, session bool) error {
	if !st.agg.permits.Answer(id, yes, session) {
		return errors.New("no question waits under this id: it was answered, or withdrawn")
	}
	return nil
}
