package ask

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

const (
	// offeredFor is how long a login that was offered may take.
	offeredFor = 5 * time.Minute
	// pageWait is how long the address of the login page may take.
	pageWait = 30 * time.Second
	// offerPause is how long no other login is offered for the same server and host.
	offerPause = time.Minute
)

// errDeclined ends a login that its user declined.
var errDeclined = errors.New("declined")

// Logins has a person log in to a server: see aggregator.Logins.
type Logins interface {
	LogIn(ctx context.Context, server schema.Server, principal string, show func(address string)) error
}

// Offers are the last logins that hosts were offered, by recipient: a session, or a user whose
// requests have a session each.
type Offers struct {
	Work   *work.Group
	Log    *slog.Logger
	States *States
	Logins Logins // nil if logins are not supported

	mu sync.Mutex
	of map[any]map[string]*Offer // by server
}

// Get returns the offer with an id, nil if there is none.
func (all *Offers) Get(of any, id string) *Offer {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.of[of] {
		if o.id == id {
			return o
		}
	}
	return nil
}

// Drop ends the offers of a session that has ended.
func (all *Offers) Drop(of any) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.of[of] {
		o.end(errDeclined)
	}
	delete(all.of, of)
}

// An Offer is a login offered to a host.
type Offer struct {
	Server  string // the name of the server that requires the login
	id      string
	advice  string          // the advice of the failure that caused it
	answers chan struct{}   // holds a token while the host has it as a request
	shown   chan struct{}   // closed when the address is known
	over    chan struct{}   // closed when the login has ended
	ctx     context.Context // ends soon after over is closed
	end     context.CancelCauseFunc

	asked    atomic.Bool // as a request
	Accepted atomic.Bool // the user agreed to open the page

	address string // set before shown is closed

	// Set before over is closed.
	err   error // nil after a successful login
	ended time.Time
}

// For returns the login to offer to the host of a request, after a failure with this advice. It is
// nil if there is none; the error is that of the last login, if it failed. host is notified of the
// end of the login, which is that of a principal.
func (all *Offers) For(of any, r *host.Request, server schema.Server, principal, advice string, host transports.Peer) (*Offer, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	o := all.of[of][server.Name]
	switch {
	case o != nil && !o.IsOver():
		return o, nil
	case o == nil || time.Since(o.ended) > offerPause || o.advice != advice:
	case o.err != nil:
		return nil, o.err
	case !r.Repeated: // it may have been refused before that login
		r.Repeated = true
		return o, nil
	}
	if r.NoOffer {
		return nil, nil
	}
	if o = all.begin(server, principal, advice, host); o == nil {
		return nil, nil
	}
	if all.of == nil {
		all.of = map[any]map[string]*Offer{}
	}
	all.forgetOver()
	if all.of[of] == nil {
		all.of[of] = map[string]*Offer{}
	}
	all.of[of][server.Name] = o
	return o, nil
}

// maxOffers is for how many users and sessions offers that are over are kept.
const maxOffers = 1000

// forgetOver forgets the offers that are over, if there are many. The caller holds mu.
func (all *Offers) forgetOver() {
	if len(all.of) < maxOffers {
		return
	}
	for of, offers := range all.of {
		maps.DeleteFunc(offers, func(_ string, o *Offer) bool { return o.IsOver() && time.Since(o.ended) > offerPause })
		if len(offers) == 0 {
			delete(all.of, of)
		}
	}
}

// begin begins a login. It returns nil after Close.
func (all *Offers) begin(server schema.Server, principal, advice string, host transports.Peer) *Offer {
	o := &Offer{
		id: "dynmcp-" + rand.Text(), Server: server.Name, advice: advice,
		answers: make(chan struct{}, 1), shown: make(chan struct{}), over: make(chan struct{}),
	}
	o.ctx, o.end = context.WithCancelCause(all.Work.Context())
	begun := all.Work.Go(func() {
		defer o.end(nil)
		err := errors.New("internal error")
		defer func() {
			if o.asked.Load() {
				host.Notify("notifications/elicitation/complete", fmt.Appendf(nil, `{"elicitationId":%s}`, wire.Quote(o.id)))
			}
			o.err, o.ended = err, time.Now()
			close(o.over)
		}()
		ctx, cancel := context.WithTimeoutCause(o.ctx, offeredFor, errors.New("nobody has logged in in time"))
		defer cancel()
		noPage := time.AfterFunc(pageWait, func() { o.end(errors.New("its login page was not found in time")) })
		defer noPage.Stop()
		err = all.Logins.LogIn(ctx, server, principal, func(address string) {
			if noPage.Stop() {
				o.address = address
				close(o.shown)
			}
		})
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil && !errors.Is(err, errDeclined) {
			all.Log.Warn("an offered login failed", "upstream", server.Name, "err", err)
		}
	})
	if !begun {
		o.end(nil)
		return nil
	}
	return o
}

// AwaitPage returns when there is a page to open, the login has ended or ctx ends.
func (o *Offer) AwaitPage(ctx context.Context) {
	select {
	case <-o.shown:
	case <-o.over:
	case <-ctx.Done():
	}
}

// IsOver reports whether the login has ended.
func (o *Offer) IsOver() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// Address returns the address of the login page, "" before it is known.
func (o *Offer) Address() string {
	select {
	case <-o.shown:
		return o.address
	default:
		return ""
	}
}

// Answered records the user's answer. A no ends the login.
func (o *Offer) Answered(accepted bool) {
	if accepted {
		o.Accepted.Store(true)
	} else {
		o.end(errDeclined)
	}
}

// WithLogin adds the result of the offered login to the failure of a request.
func WithLogin(err, cause error) error {
	failure, ok := errors.AsType[*transports.Failure](err)
	if cause == nil || errors.Is(cause, errDeclined) || !ok {
		return err
	}
	said := *failure
	said.Cause = fmt.Errorf("%w; the login that was offered failed: %v", failure.Cause, cause)
	return &said
}

// OfUser is the failure of a request for lack of its user's own login, as he may read it. reaches is
// false if no browser of a user can come back from a login.
func OfUser(failure *transports.Failure, reaches bool) error {
	said := *failure
	said.Personal, said.Cause, said.Hint = true, errors.New("it wants a login of each user"), "call again for the address of another login"
	if !reaches {
		said.Hint = "the operator of this gateway sets gateway.public_url, without which no user can log in"
	}
	return &said
}

// WithAddress is the failure of a request whose host cannot show the page of an offered login: it
// has the address.
func WithAddress(err error, o *Offer) error {
	failure, ok := errors.AsType[*transports.Failure](err)
	switch {
	case o.IsOver() && o.err != nil:
		return WithLogin(err, o.err)
	case !ok || o.Address() == "":
		return err
	}
	said := *failure
	said.Hint = fmt.Sprintf("have the user open %s to log in as himself, then call again", o.Address())
	return &said
}

// elicitation returns the params of the request to the host.
func (o *Offer) elicitation() json.RawMessage {
	text := o.Server + " wants a login. Log in on its page, as yourself: what was called goes on after that."
	return fmt.Appendf(nil, `{"mode":"url","message":%s,"url":%s}`, wire.Quote(text), wire.Quote(o.address))
}

// Ask asks a host of the handshake era, unless it already agreed. It returns when the host has
// answered, the login is over or ctx ends. A no ends the login.
func (o *Offer) Ask(ctx context.Context, r *host.Request) {
	select {
	case o.answers <- struct{}{}:
		defer func() { <-o.answers }()
	case <-o.over:
		return
	case <-ctx.Done():
		return
	}
	if o.Accepted.Load() || o.IsOver() {
		return
	}
	o.asked.Store(true)
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	defer context.AfterFunc(o.ctx, withdraw)() // hosts may answer after the login has ended
	answer, err := r.Peer.Request(asking, "elicitation/create", wire.Set(o.elicitation(), "elicitationId", wire.Quote(o.id)))()
	switch {
	case wire.EqualString(wire.Get(answer, "action"), "accept"):
		o.Answered(true)
	case asking.Err() != nil: // the request ended, which says nothing about the login, or the login did
		return
	case err != nil:
		o.end(fmt.Errorf("the host did not show the page: %w", err))
	default:
		o.Answered(false)
	}
}

// Result returns the result that makes a host of the stateless era ask its user. params are those
// of the request, which may be nil.
func (all *Offers) Result(o *Offer, params json.RawMessage) json.RawMessage {
	rounds := copyRounds([]byte("{}"), params)
	state := offerPrefix + o.id + "." + base64.RawURLEncoding.EncodeToString(rounds)
	if s := all.States; s.Replica != "" {
		state += "." + s.seal(State{})
	}
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"login":{"method":"elicitation/create","params":%s}},"requestState":%s}`,
		o.elicitation(), wire.Quote(state))
}

// Resume reverses Result in the params of the host's next request: it returns the id of the offer,
// and the params of the previous request. If a requestState belongs to no offer, ok is false,
// without an error.
func Resume(requestState json.RawMessage, params json.RawMessage) (id string, _ json.RawMessage, ok bool, err error) {
	text, _ := wire.Text(requestState)
	state, ours := strings.CutPrefix(text, offerPrefix)
	if !ours {
		return "", params, false, nil
	}
	id, text, _ = strings.Cut(state, ".")
	text, _, _ = strings.Cut(text, ".")
	rounds, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !wire.IsObject(rounds) || !wire.Valid(rounds) {
		return "", nil, false, Stale()
	}
	return id, copyRounds(wire.Delete(params, "requestState", "inputResponses"), rounds), true, nil
}

// copyRounds copies the state of earlier rounds from a request.
func copyRounds(to, from json.RawMessage) json.RawMessage {
	for _, name := range []string{"requestState", "inputResponses"} {
		if value := wire.Get(from, name); value != nil {
			to = wire.Set(to, name, value)
		}
	}
	return to
}

// WantsLogin reports whether a failure is due to a missing login.
func WantsLogin(err error) bool {
	failure, ok := errors.AsType[*transports.Failure](err)
	return ok && failure.Login
}

// Await waits for the end of a login for a request, and returns why it failed, if it did.
func (of *Offers) Await(ctx context.Context, r *host.Request, o *Offer) error {
	if token := wire.Get(r.Meta, "progressToken"); token != nil {
		stop := of.Work.ReportWait(ctx, r.Peer, token, "waiting for the login at "+o.Server)
		defer stop()
	}
	select {
	case <-o.over:
		return o.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
