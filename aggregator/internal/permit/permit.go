// Package permit asks a person about a call if the policy requires it, and stores the answers. A
// host of the handshake era is asked while its call waits, one of the stateless era in the result
// of its request, which it repeats with the answer.
package permit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/strictjson"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A Question is about one call.
type Question struct {
	Of         any    // owner of the answer: the session, or the user of a request without one
	Persistent bool   // Of is a session, for which an answer may be valid
	Principal  string // the user
	Rules      rule.Rules
	Verdict    rule.Verdict
	Server     string
	Tool       string // for display
	Arguments  json.RawMessage

	digest [sha256.Size]byte
	shown  string // the arguments
}

// Prepare returns why a person cannot judge the arguments, nil if one can. It is called first.
func (q *Question) Prepare() error {
	same, err := strictjson.Canonical(q.Arguments)
	if err != nil {
		return err
	}
	q.shown = string(same)
	q.digest = sha256.Sum256(fmt.Appendf(nil, "%q %q %d %s", q.Server, q.Tool, q.Verdict.Rule, same))
	return nil
}

// An answer is the answer of a person.
type answer struct {
	yes     bool
	session bool      // for all calls of the tool under this rule, in this session
	expires time.Time // of an answer that no call has used
}

// errDeclined means that the person declined the call.
var errDeclined = errors.New("the person who was asked did not allow it")

// Permits stores the answers of persons. The zero value with States is ready to use.
type Permits struct {
	States *ask.States

	mu     sync.Mutex
	lasts  map[any]map[standingPermit]bool      // by owner
	untold map[any]map[[sha256.Size]byte]answer // for requests that are repeated

	waiting []*pendingQuestion // the oldest first
}

// A standingPermit is for one tool under one rule of one config.
type standingPermit struct {
	rules        rule.Rules
	rule         int
	server, tool string
}

func (q *Question) standing() standingPermit {
	return standingPermit{q.Rules, q.Verdict.Rule, q.Server, q.Tool}
}

// Answered returns an earlier answer about the call: nil if it is allowed, otherwise an error. ok is
// false if there is none.
func (ps *Permits) Answered(q *Question) (err error, ok bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.lasts[q.Of][q.standing()] {
		return nil, true
	}
	a, ok := ps.untold[q.Of][q.digest]
	if !ok {
		return nil, false
	}
	if delete(ps.untold[q.Of], q.digest); len(ps.untold[q.Of]) == 0 {
		delete(ps.untold, q.Of)
	}
	if time.Now().After(a.expires) {
		return nil, false
	}
	return ps.keepLocked(q, a), true
}

// keepLocked stores an answer that lasts, and returns it as an error.
func (ps *Permits) keepLocked(q *Question, a answer) error {
	if !a.yes {
		return errDeclined
	}
	if a.session && q.Persistent {
		if ps.lasts == nil {
			ps.lasts = map[any]map[standingPermit]bool{}
		}
		if ps.lasts[q.Of] == nil {
			ps.lasts[q.Of] = map[standingPermit]bool{}
		}
		ps.lasts[q.Of][q.standing()] = true
		for _, w := range ps.waiting {
			if w.said == nil && w.question.Of == q.Of && w.question.standing() == q.standing() {
				w.answerLocked(answer{yes: true})
			}
		}
	}
	return nil
}

// Drop forgets the answers of a session.
func (ps *Permits) Drop(of any) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.lasts, of)
	delete(ps.untold, of)
}

// Lacks returns why the host with these capabilities cannot ask, "" if it can.
func (q *Question) Lacks(capabilities json.RawMessage) string {
	return ask.Lacks(capabilities, "elicitation/create", q.elicitation())
}

// Ask asks through a request of the handshake era, and returns nil if the call is allowed. An earlier
// Answer replaces the host's answer.
func (ps *Permits) Ask(ctx context.Context, through transports.Peer, q *Question) error {
	ctx, cancel := context.WithTimeoutCause(ctx, ask.InputWait, errors.New("nobody has answered"))
	defer cancel()
	w, asked := ps.addPending(ctx, q)
	said, err := through.Request(asked, "elicitation/create", q.elicitation())()
	elsewhere := ps.withdraw(w)
	switch {
	case elsewhere != nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the host did not ask its user: %w", err)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if elsewhere != nil && (err != nil || read(said).yes) { // a no of the host counts
		return ps.keepLocked(q, *elsewhere)
	}
	return ps.keepLocked(q, read(said))
}

// Result returns the result that makes a host of the stateless era ask.
func (ps *Permits) Result(q *Question) json.RawMessage {
	state := ps.States.SealPermit(ask.State{Principal: q.Principal, Upstream: q.Server, Request: q.digest})
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"permit":{"method":"elicitation/create","params":%s}},"requestState":%s}`,
		q.elicitation(), wire.Quote(state))
}

// Resume removes the answer to a question of Result from the params of a request and stores it. It is
// an error if the state is not ours, or has expired.
func (ps *Permits) Resume(r *host.Request, of any, principal string) error {
	text, _ := wire.Text(r.Outline.Get(r.Params, "requestState"))
	state, ours, ok := ps.States.OpenPermit(text, principal)
	if !ours {
		return nil
	}
	if !ok {
		return ask.Stale()
	}
	a := read(wire.Get(r.Params, "inputResponses", "permit"))
	r.Params, r.Outline = wire.Delete(r.Params, "requestState", "inputResponses"), nil
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.untold == nil {
		ps.untold = map[any]map[[sha256.Size]byte]answer{}
	}
	if ps.untold[of] == nil {
		ps.untold[of] = map[[sha256.Size]byte]answer{}
	}
	for digest, old := range ps.untold[of] {
		if time.Now().After(old.expires) {
			delete(ps.untold[of], digest)
		}
	}
	a.expires = time.Now().Add(ask.InputWait)
	ps.untold[of][state.Request] = a
	return nil
}

// read reads the answer to an elicitation. One without content allows one call.
func read(said json.RawMessage) answer {
	allow, _ := wire.Text(wire.Get(said, "content", "allow"))
	yes := wire.EqualString(wire.Get(said, "action"), "accept") && (allow == "once" || allow == "session" || allow == "" && wire.Get(said, "content", "allow") == nil)
	return answer{yes: yes, session: allow == "session"}
}

// maxShown limits the displayed arguments, in characters.
const maxShown = 2000

// elicitation returns the request to a host: what would run, and for how long that is allowed.
func (q *Question) elicitation() json.RawMessage {
	text := fmt.Sprintf("Allow a call of %s? It would run with these arguments:\n%s", display.Cut(display.Fold(q.Tool), 200), q.visible())
	choices, titles := `["once"]`, `["Once"]`
	if q.Persistent {
		choices, titles = `["once","session"]`, `["Once","For this session, with any arguments"]`
	}
	return fmt.Appendf(nil, `{"message":%s,"requestedSchema":{"type":"object","properties":{"allow":{"type":"string","title":"Allow it","enum":%s,"enumNames":%s,"default":"once"}}}}`,
		wire.Quote(text), choices, titles)
}

// visible returns the arguments for display.
func (q *Question) visible() string {
	shown := display.JSON(json.RawMessage(q.shown))
	if cut := display.Prefix(shown, maxShown); len(cut) < len(shown) {
		return fmt.Sprintf("%s… (%d bytes of arguments, of which this is the beginning)", cut, len(q.shown))
	}
	return shown
}

// A Waiting is an unanswered question to a host of the handshake era.
type Waiting struct {
	ID         string    `json:"id"`
	Tool       string    `json:"tool"`
	Arguments  string    `json:"arguments"` // for display
	Since      time.Time `json:"since"`
	Persistent bool      `json:"lasts"` // an answer may be valid for the session
}

// A pendingQuestion is a question that may be answered in place of the host.
type pendingQuestion struct {
	Waiting

	question *Question
	answered context.CancelCauseFunc // withdraws the question from the host
	said     *answer                 // nil until it was answered elsewhere
}

// errElsewhere means that a question was not answered by the host.
var errElsewhere = errors.New("the question was answered elsewhere")

// addPending lists a question until withdraw is called. The context ends when the question was answered
// elsewhere.
func (ps *Permits) addPending(ctx context.Context, q *Question) (*pendingQuestion, context.Context) {
	ctx, answered := context.WithCancelCause(ctx)
	w := &pendingQuestion{Waiting{rand.Text()[:8], display.Cut(display.Fold(q.Tool), 200), q.visible(), time.Now(), q.Persistent}, q, answered, nil}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.waiting = append(ps.waiting, w)
	return w, ctx
}

// withdraw removes a question from the list, and returns the answer from elsewhere, nil if there is
// none.
func (ps *Permits) withdraw(w *pendingQuestion) *answer {
	w.answered(nil)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.waiting = slices.DeleteFunc(ps.waiting, func(other *pendingQuestion) bool { return other == w })
	return w.said
}

// Waiting returns the unanswered questions, the oldest first.
func (ps *Permits) Waiting() []Waiting {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := []Waiting{}
	for _, w := range ps.waiting {
		all = append(all, w.Waiting)
	}
	return all
}

// answerLocked answers the question in place of the host, from which it is withdrawn.
func (w *pendingQuestion) answerLocked(a answer) {
	w.said = &a
	w.answered(errElsewhere)
}

// Answer answers a question in place of the host, and reports whether it was waiting. session extends
// the answer to the session, if the question permits that.
func (ps *Permits) Answer(id string, yes, session bool) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	i := slices.IndexFunc(ps.waiting, func(w *pendingQuestion) bool { return w.ID == id && w.said == nil })
	if i < 0 {
		return false
	}
	ps.waiting[i].answerLocked(answer{yes: yes, session: session})
	return true
}
