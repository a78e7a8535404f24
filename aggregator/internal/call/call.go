// Package call holds a request of a host between the request and the upstream's answer:
// in flight, cancelled, or waiting for input of its host. The owner of a call knows where
// it goes.
package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// An Env is what all calls share.
type Env struct {
	Work    *work.Group
	Log     *slog.Logger
	Waiting ask.Waiting[*Flight] // for input
	States  ask.States
	Budget  *membudget.Budget      // of the memory that calls hold
	Params  *membudget.Reservation // of hosts on stdio, which share one account; the edge counts the bodies of others
}

// NewEnv returns the environment of calls whose memory a budget bounds, and whose states keys seal
// on a replica.
func NewEnv(w *work.Group, log *slog.Logger, budget *membudget.Budget, keys *seal.Keys, replica string) Env {
	return Env{
		Work: w, Log: log, Waiting: ask.Waiting[*Flight]{Work: w}, States: ask.States{Keys: keys, Replica: replica},
		Budget: budget, Params: budget.Open("", nil),
	}
}

// An Owner knows what a call is for.
type Owner interface {
	// Send sends a call that was not sent.
	Send(r *host.Request)
	// Deliver answers a request with the answer to the call, which came over conn. outline is
	// that of the result, and may be nil.
	Deliver(r *host.Request, conn *upstream.Conn, outline *wire.Outline, result json.RawMessage, err error)
	// CutOff answers a request whose call ends without an answer.
	CutOff(r *host.Request, outcome transports.Outcome)
	// Ended removes the call from those in flight at its upstream. It reports whether calls of
	// other hosts may be, one of which may wait for a question in this call.
	Ended() (others bool)
	// Upstream returns a key for the upstream: the calls of each that wait for input are bounded.
	Upstream() any
	// State returns the state for the host's next request: of the call with this id in
	// Env.Waiting or, with an upstream's own state, of a call with the same params.
	State(id string) ask.State
}

// The states of a call.
type state uint8

const (
	unsent state = iota // it waits for a connection
	sent                // it was sent over the connection, or is being sent
	asking              // its result for the host was questions; the host's next request continues it
	done                // answered, cancelled, failed, or sent again as another call
)

// A Flight is a host's request between the request and the upstream's answer.
type Flight struct {
	upstream.Call
	env     *Env
	owner   Owner
	size    int
	Session *sessions.Session // whose request it is

	mu        sync.Mutex
	state     state
	cancelled bool
	resumed   bool                   // request is not the first
	reserved  int                    // bytes of Env.Params
	answer    *membudget.Reservation // of a large answer that is being read
	request   *host.Request          // to be answered; while asking, the request that was answered with questions
	conn      *upstream.Conn         // while it is at the upstream
	release   func()                 // of conn
	reason    json.RawMessage        // of the host's cancel

	questions     []*ask.Question          // of the upstream, without an answer
	asked         map[string]*ask.Question // while asking: those that the host has, by key
	lastKey       int
	parked        *membudget.Reservation // while asking; nil before
	buffered      []notification         // while asking
	bufferedBytes int
	dropped       int      // notifications that exceeded the buffer
	outcome       *outcome // that came while asking
}

// An outcome is the answer to a call that came while its host was asked.
type outcome struct {
	result json.RawMessage
	err    error
	conn   *upstream.Conn
}

// Begin makes f the call for a request with params of size bytes. It returns false if the
// host may hold no more.
func (f *Flight) Begin(env *Env, owner Owner, s *sessions.Session, r *host.Request, size int) bool {
	f.env, f.owner, f.Session, f.request, f.size = env, owner, s, r, size
	if s.Account != "" {
		return true
	}
	if !env.Params.Reserve(int64(size)) {
		return false
	}
	f.reserved = size
	return true
}

func (f *Flight) releaseParamsLocked() {
	f.env.Params.Release(int64(f.reserved))
	f.reserved = 0
}

// ReserveAnswer reserves memory for the part of a large answer that was read: it is the
// MayRead of a call.
func (f *Flight) ReserveAnswer(size int) bool {
	f.mu.Lock()
	if f.answer == nil && size > 0 {
		f.answer = f.env.Budget.Open(f.Session.Account, nil)
	}
	answer := f.answer
	f.mu.Unlock()
	return answer.Resize(int64(size))
}

// HostRequest returns the request that is to be answered.
func (f *Flight) HostRequest() *host.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.request
}

// Lacks returns why the host cannot be asked something within the call, "" if it can.
func (f *Flight) Lacks(method string, params json.RawMessage) string {
	r := f.HostRequest()
	switch {
	case r.Era == transports.Handshake, f.Session.Replica:
		return f.Session.Lacks(method, params)
	case !ask.MayNeedInput(r.Method):
		return fmt.Sprintf("the host speaks %s, in which %s cannot ask it anything", transports.StatelessVersion, r.Method)
	case ask.Capability(method) == "":
		return fmt.Sprintf("the host speaks %s, in which it cannot be asked for %s", transports.StatelessVersion, method)
	}
	return ask.Lacks(wire.Get(r.Meta, transports.MetaCapabilities), method, params)
}

// WantsLog reports whether a request of the stateless era asked for a log message.
func (f *Flight) WantsLog(params json.RawMessage) bool {
	asked := wire.Get(f.HostRequest().Meta, transports.MetaLogLevel)
	return asked != nil && notify.Logs(notify.Severity(asked), params)
}

// IsCancelled reports whether the host has cancelled the request.
func (f *Flight) IsCancelled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancelled
}

// EndUnsent ends a call that was not sent.
func (f *Flight) EndUnsent() {
	f.mu.Lock()
	f.state = done
	f.releaseParamsLocked()
	f.mu.Unlock()
}

// BeginSending notes the connection over which the call is sent next; release releases it.
// It returns false if the request has ended, and ends the call.
func (f *Flight) BeginSending(r *host.Request, conn *upstream.Conn, release func()) bool {
	f.mu.Lock()
	f.state, f.conn, f.release = sent, conn, release
	f.mu.Unlock()
	if !r.OnCancel(func(reason json.RawMessage) { f.Cancel(r, reason) }) {
		f.abort(transports.NotSent)
		return false
	}
	return true
}

// Cancel ends the call without the upstream's answer: the host has cancelled r, or dynmcp
// shuts down.
func (f *Flight) Cancel(r *host.Request, reason json.RawMessage) {
	f.mu.Lock()
	if f.request != r { // another request continues the call
		f.mu.Unlock()
		return
	}
	f.cancelled, f.reason = true, reason
	isAsking := f.state == asking
	f.mu.Unlock()
	if isAsking {
		f.stopAsking(reason)
		return
	}
	f.Withdraw()
}

// Withdraw tells the connection that a cancelled call needs no answer. Either Withdraw or
// Finish ends the call, whichever comes first.
func (f *Flight) Withdraw() {
	f.mu.Lock()
	conn, reason, ours := f.conn, f.reason, f.cancelled && f.state == sent
	f.mu.Unlock()
	if ours && conn.Cancel(&f.Call, reason) {
		f.abort(transports.Unknown)
	}
}

// abort ends a call on our side. A request that the host cancelled has ended
// already and gets no answer.
func (f *Flight) abort(outcome transports.Outcome) {
	r, _, _ := f.Finish(nil, nil)
	f.owner.CutOff(r, outcome)
}

// Finish releases what the call held, and returns the request to be answered and the
// connection it was sent on. ok is false if no request is to be answered now: the outcome
// of a call whose host is asked is kept for the request that continues it.
func (f *Flight) Finish(result json.RawMessage, err error) (r *host.Request, conn *upstream.Conn, ok bool) {
	f.mu.Lock()
	r, conn, ok = f.request, f.conn, f.state != asking && f.state != done
	release := f.release
	f.releaseParamsLocked()
	f.answer.Set(0)
	var questions []*ask.Question
	var over []*membudget.Reservation
	if f.state == asking {
		f.outcome = &outcome{bytes.Clone(result), err, conn} // the line is reused
		over = f.parkLocked()
	} else {
		f.state = done
		questions, f.questions = f.questions, nil
	}
	f.conn, f.release = nil, nil
	f.mu.Unlock()
	membudget.Shed(over)
	others := f.owner.Ended()
	release()
	ask.FailUnanswered(questions, others)
	return r, conn, ok
}
