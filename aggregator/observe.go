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
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// observeRefusal tells observers of a request that failed before it became a call of an
// upstream, for example because its server cannot be started.
func (q request) observeRefusal(err error) {
	failure, ok := errors.AsType[*transports.Failure](err)
	if ok && !q.r.Counted {
		q.observeUnsent(event.Call{Upstream: failure.Upstream, Kind: observe.KindOf(failure), Outcome: failure.Outcome, Asked: len(q.r.Params)})
	}
}

// observeUnsent tells observers of a request that was refused now.
func (q request) observeUnsent(c event.Call) {
	if q.agg.observation.Enabled() {
		c.Method, c.From, c.Began = q.r.Method, q.Info(), time.Now()
		c.End = c.Began
		q.agg.observation.Ended(c)
	}
}

// A Status reports on a run.
type Status struct{ agg *Aggregator }

// Status returns a Status whose methods report on the run as it is when they are called.
func (a *Aggregator) Status() Status { return Status{a} }

// Profile returns the profile that the config was reduced to, "" if it was not.
func (st Status) Profile() string { return st.agg.config().Profile }

// Memory returns how many bytes are held for hosts, and the maximum.
func (st Status) Memory() (bytes, limit int64) {
	budget := st.agg.calls.Budget
	return budget.Total(), budget.Max()
}

// Upstreams returns the status of each upstream, in the order of the config.
func (st Status) Upstreams() []event.Server {
	a := st.agg
	view := a.catalog.View()
	inFlight := map[string]int{}
	a.fleet.Endpoints.Range(func(_, value any) bool {
		p := value.(*fleet.Endpoint)
		for _, c := range p.Calls.All() {
			if !c.Session.Replica { // the other replica counts that call
				inFlight[p.Upstream.Server.Name]++
			}
		}
		return true
	})
	var all []event.Server
	for _, u := range a.set.All() {
		p, status := a.fleet.Of(u), u.Status()
		info := event.Server{
			Name:      u.Server.Name,
			State:     string(status.State),
			Lazy:      u.Server.Lazy(),
			Transport: string(u.Server.Transport),
			Starts:    p.Record.Starts.Load(),
			Failed:    status.Failed,
			FailedAt:  status.FailedAt,
			InFlight:  inFlight[u.Server.Name],
			Waiting:   a.fleet.Records.Waiting(u.Server.Name),
		}
		if known, ok := view.Server(u.Server.Name); ok {
			info.Tools = known.Tools
			if len(u.Server.ToolFilter) > 0 { // which is applied when the stored tools are read
				info.Tools = len(view.ServerTools(u.Server.Name))
			}
		}
		if !status.FailedAt.IsZero() && (status.State == lazy.Idle || status.State == lazy.Lost) {
			info.State = event.Failed
		}
		if conn := u.Conn(); conn != nil {
			process := conn.Process()
			info.PID, info.Sandbox = process.PID, process.Sandbox
			info.Since, info.Protocol = time.Unix(0, p.Since.Load()), conn.ServerInfo().ProtocolVersion
		} else if status.Err != nil {
			info.Err, _, _ = strings.Cut(status.Err.Error(), "\n")
		}
		all = append(all, info)
	}
	return all
}

// Sessions returns all sessions, oldest first, also those of other replicas.
func (st Status) Sessions() []event.Session {
	var all []event.Session
	for _, s := range st.agg.sessions.All() {
		all = append(all, s.Info())
	}
	return slices.Clip(all)
}

// Failures returns the last failures whose cause was kept from hosts, oldest first.
func (st Status) Failures() []event.Failure {
	return st.agg.references.All()
}

// reserved returns an error as the session's host may read it. Only the user of this
// machine and other replicas may read what a server printed and where it runs.
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

// Stderr returns the last lines that a running or failed server wrote to stderr, without the
// secrets of the config.
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

// Start starts a server unless it runs, even during a back-off. The idle timer of the server
// begins at once.
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

// Stop ends the processes of a server when their calls have ended. The next use starts the
// server again.
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

// Questions returns the calls that wait for a person's answer because of the policy, oldest
// first. Calls of hosts of the stateless era are not among them: those hosts answer with
// another request.
func (st Status) Questions() []Question { return st.agg.judge.Permits.Waiting() }

// Answer answers a question in place of its host. session allows the tool for the whole
// session.
func (st Status) Answer(id string, yes, session bool) error {
	if !st.agg.judge.Permits.Answer(id, yes, session) {
		return errors.New("no pending question has this id: it was answered or withdrawn")
	}
	return nil
}
