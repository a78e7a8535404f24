package aggregator

import (
	"encoding/json"
	"errors"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/scope"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A session is the session of a host with the aggregator that serves it.
type session struct {
	scope.Scope
	agg *Aggregator
}

// of returns a session with the aggregator.
func (a *Aggregator) of(s *sessions.Session) session { return session{a.scopes.Of(s), a} }

// openSession returns a new session, which is not registered before Join.
func (a *Aggregator) openSession(id Identity) session {
	id.SingleWrap = a.config().SingleWrap
	return a.of(sessions.Open(a.sessions, id, a.calls.Budget))
}

// declare keeps the capabilities that a host declared, in the handshake or with a request. It returns
// false if too much memory is held for the host.
func (s session) declare(capabilities json.RawMessage, era transports.Era) bool {
	declared, ok := s.Declare(capabilities, era)
	s.agg.fleet.Declared.Note(declared)
	return ok
}

// introduce keeps what initialize says of the host. It returns false as declare does.
func (s session) introduce(r *host.Request) bool {
	s.Introduce(wire.Get(r.Params, "clientInfo", "name"))
	return s.declare(object(wire.Get(r.Params, "capabilities")), transports.Handshake)
}

// maxKept limits the URI of a subscription and the params of logging/setLevel, in bytes.
const maxKept = 8 << 10

// errHeld means that the account of a host may not have the memory to keep what the host said.
var errHeld = &transports.Failure{
	Code: transports.CodeOverloaded, Outcome: transports.NotSent,
	Cause: errors.New("too much memory is held for hosts to keep what this one said"), Hint: `try again later, or raise "max_held_bytes" in "gateway"`,
}

// keeps returns an error for a part of a request that is too long to be kept.
func keeps(what string, bytes int) error {
	if bytes > maxKept {
		return transports.InvalidParams("%s: %d bytes are more than %d", what, bytes, maxKept)
	}
	return nil
}

// converse connects a session with its host.
func (s session) converse(edge host.Edge) *host.Session {
	opts := host.SessionOptions{
		Control:            s.agg.server.of(s.agg),
		HandleRequest:      s.handle,
		Introduce:          func(r *host.Request) { s.introduce(r) },
		HandleNotification: s.handleNotification,
		Busy:               s.agg.fleet.AnyLoading,
		Dropped:            func() { s.agg.observation.Dropped(s.Info()) },
		Memory:             s.Memory(),
		Tap:                s.agg.opts.Tap,
		Peer:               event.Connection{Session: s.ID, Server: s.Info().Server},
		Logger:             s.agg.log,
	}
	if s.Account != "" {
		opts.HandleRequest = s.handleTogether
	}
	conversation := host.NewSession(s.ID, edge, opts)
	s.Join(conversation)
	s.agg.observation.Opened(s.Info())
	return conversation
}

// end removes the session, and ends its offers, questions, subscriptions and own upstreams.
func (s session) end() {
	var verbosities map[*lazy.Upstream]notify.Level
	if s.Recipient.Level().IsSet() {
		verbosities = s.agg.fleet.Verbosities(s.Session)
	}
	s.Recipient.Leave()
	if !s.Replica {
		s.agg.observation.Closed(s.Info())
	}
	if s.Persistent { // otherwise the next round of a request has another session
		s.agg.calls.Waiting.Abandon(nil, func(c *call.Flight, _ *host.Request) bool { return c.Session == s.Session })
		s.agg.dropParked(s.Session, nil, nil)
		s.agg.offers.Drop(s.Session)
		s.agg.judge.Permits.Drop(s.Session)
	}
	subscribed := s.Recipient.End()
	s.Count()
	s.agg.fleet.RetireDedicated(s.Session)
	of := fleet.LevelsOf(s.agg.fleet, verbosities, func(before, now notify.Level) bool { return now.Severity != before.Severity })
	if len(of) > 0 {
		s.agg.work.Go(func() { of.Send(s.agg.ctx, s.agg.fleet) })
	}
	s.agg.fleet.DropSubscriptions(s.Session, subscribed)
}

// announce notifies hosts of changed lists until the aggregator closes.
func (a *Aggregator) announce() {
	for a.changed.Wait(a.ctx) {
		a.work.Guard(func() {
			for _, known := range a.sessions.All() {
				s := a.of(known)
				if s.Replica { // it reads the server's own lists
					continue
				}
				a.fleet.Lists.Compare(known)
				settled := !(wait{session: s}).incomplete() // before the snapshot, which has to include what ended the wait
				now := s.Snapshot()
				s.Recipient.Announce(now, s.FollowedTasks(), s.Reading(now, settled), settled)
			}
		})
	}
}
