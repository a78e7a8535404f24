package ask

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	// pageWait is how long it may take until the address of its page is known.
	pageWait = 30 * time.Second
	// offerPause is how long no other login is offered for what the last one was for.
	offerPause = time.Minute
)

// errDeclined ends a login that its user does not want.
var errDeclined = errors.New("declined")

// Offers are the last logins that hosts were offered, by whom they were offered to: a
// session, or a user whose requests have a session each.
type Offers struct {
	Work   *work.Group
	Log    *slog.Logger
	States *States
	LogIn  func(ctx context.Context, server schema.Server, show func(address string)) error // nil is that nobody can

	mu sync.Mutex
	of map[any]map[string]*Offer // by server
}

// Get returns the offer with an id, nil if absent.
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

// Drop ends what a session was offered, with it.
func (all *Offers) Drop(of any) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.of[of] {
		o.end(errDeclined)
	}
	delete(all.of, of)
}

// An Offer is a login that a host was offered.
type Offer struct {
	id      string
	server  string
	advice  string          // what the failure that it came of says to do
	answers chan struct{}   // holds a token while the host has the question as a request
	shown   chan struct{}   // closed when the address is known
	over    chan struct{}   // closed when nothing more comes of the login
	ctx     context.Context // ends soon after over is closed
	end     context.CancelCauseFunc

	asked    atomic.Bool // as a request
	accepted atomic.Bool // the user goes to the page

	address string // set before shown is closed

	// Set before over is closed.
	err   error // nil is a login that was made
	ended time.Time
}

// For returns the login that the host of a request is to be offered after a failure that
// gave this advice; nil if unset, and the error is why the last one failed, if it did. host
// hears of the end of the login.
func (all *Offers) For(of any, r *host.Request, server schema.Server, advice string, host transports.Peer) (*Offer, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	o := all.of[of][server.Name]
	switch {
	case o != nil && !o.IsOver():
		return o, nil
	case o == nil || time.Since(o.ended) > offerPause || o.advice != advice:
	case o.err != nil:
		return nil, o.err
	case !r.Repeated: // it was refused before that login, maybe
		r.Repeated = true
		return o, nil
	}
	if r.NoOffer {
		return nil, nil
	}
	if o = all.begin(server, advice, host); o == nil {
		return nil, nil
	}
	if all.of == nil {
		all.of = map[any]map[string]*Offer{}
	}
	if all.of[of] == nil {
		all.of[of] = map[string]*Offer{}
	}
	all.of[of][server.Name] = o
	return o, nil
}

// begin begins a login, nil after Close.
func (all *Offers) begin(server schema.Server, advice string, host transports.Peer) *Offer {
	o := &Offer{
		id: "dynmcp-" + rand.Text(), server: server.Name, advice: advice,
		answers: make(chan struct{}, 1), shown: make(chan struct{}), over: make(chan struct{}),
	}
	o.ctx, o.end = all.Work.WithCancelCause()
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
		err = all.LogIn(ctx, server, func(address string) {
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

// Server returns the name of the server that wants the login.
func (o *Offer) Server() string { return o.server }

// Shown is closed when there is a page to go to, Over when nothing more comes of the login.
func (o *Offer) Shown() <-chan struct{} { return o.shown }
func (o *Offer) Over() <-chan struct{}  { return o.over }

// IsOver reports whether nothing more comes of the login.
func (o *Offer) IsOver() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// Err returns why the login that is over was not made.
func (o *Offer) Err() error { return o.err }

// IsAccepted reports whether the user goes to the page.
func (o *Offer) IsAccepted() bool { return o.accepted.Load() }

// Answered takes the user's answer. A no ends the login.
func (o *Offer) Answered(accepted bool) {
	if accepted {
		o.accepted.Store(true)
	} else {
		o.end(errDeclined)
	}
}

// WithLogin adds to the failure of a request what came of the login that was offered
// for it.
func WithLogin(err, cause error) error {
	var failure *transports.Failure
	if cause == nil || errors.Is(cause, errDeclined) || !errors.As(err, &failure) {
		return err
	}
	said := *failure
	said.Cause = fmt.Errorf("%w; the login that was offered failed: %v", failure.Cause, cause)
	return &said
}

// elicitation is what the host is asked.
func (o *Offer) elicitation() json.RawMessage {
	text := o.server + " wants a login. Log in on its page, as yourself: what was called goes on after that."
	return fmt.Appendf(nil, `{"mode":"url","message":%s,"url":%s}`, wire.Quote(text), wire.Quote(o.address))
}

// Ask asks a host of the handshake era, unless it agreed already, and returns when it
// has answered, the login is over or ctx ends. A no ends the login.
func (o *Offer) Ask(ctx context.Context, r *host.Request) {
	select {
	case o.answers <- struct{}{}:
		defer func() { <-o.answers }()
	case <-o.over:
		return
	case <-ctx.Done():
		return
	}
	if o.accepted.Load() || o.IsOver() {
		return
	}
	o.asked.Store(true)
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	defer context.AfterFunc(o.ctx, withdraw)() // hosts may answer when all is done
	answer, err := r.Peer.Request(asking, "elicitation/create", wire.Set(o.elicitation(), "elicitationId", wire.Quote(o.id)))()
	switch {
	case wire.EqualString(wire.Get(answer, "action"), "accept"):
		o.Answered(true)
	case asking.Err() != nil: // the request ended, which says nothing of the login, or the login did
		return
	case err != nil:
		o.end(fmt.Errorf("the host did not show the page: %w", err))
	default:
		o.Answered(false)
	}
}

// Result returns the result that has a host of the stateless era ask its user. params are
// those of the request, which may be nil.
func (all *Offers) Result(o *Offer, params json.RawMessage) json.RawMessage {
	rounds := copyRounds([]byte("{}"), params)
	state := offerPrefix + o.id + "." + base64.RawURLEncoding.EncodeToString(rounds)
	if s := all.States; s.Replica != "" {
		state += "." + s.seal(State{Owner: s.Replica})
	}
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"login":{"method":"elicitation/create","params":%s}},"requestState":%s}`,
		o.elicitation(), wire.Quote(state))
}

// Resume undoes Result in the params of the request that a host makes next: it returns the
// id of the offer, and the params of the request before. ok is false, without an error, of a
// requestState that is of no offer.
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

// copyRounds copies what a request has of the rounds before.
func copyRounds(to, from json.RawMessage) json.RawMessage {
	for _, name := range []string{"requestState", "inputResponses"} {
		if value := wire.Get(from, name); value != nil {
			to = wire.Set(to, name, value)
		}
	}
	return to
}

// WantsLogin reports whether a failure is for want of a login.
func WantsLogin(err error) bool {
	var failure *transports.Failure
	return errors.As(err, &failure) && failure.Login
}

// Await waits for the end of a login that a request waits for, and returns why there is
// none.
func (of *Offers) Await(ctx context.Context, r *host.Request, o *Offer) error {
	if token := wire.Get(r.Meta, "progressToken"); token != nil {
		stop := of.Work.ReportWait(ctx, r.Peer, token, "waiting for the login at "+o.Server())
		defer stop()
	}
	select {
	case <-o.Over():
		return o.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
