package aggregator

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A request that fails because its server wants a login is answered with the command
// to run, unless its host shows pages to people (URL mode elicitation). Then whoever
// sits there is offered the login, and the request goes on after it:
//
//	a host of the handshake era is asked while its request waits
//	a host of the stateless era has the question for a result, and its next request
//	waits for the login and is served like any other
//
// We open no browser: the host does, if its user agrees. A login belongs to the session
// that it was offered to, or where each request has a session of its own to their user;
// all requests of that session or user wait for the same one.

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

// Offers are the last logins that hosts were offered.
type offers struct {
	mu sync.Mutex
	of map[offeree]map[string]*offer // by server
}

// An offeree is a *session, or a principal.
type offeree any

func (s *session) offeree() offeree {
	if !s.lasts {
		return s.principal
	}
	return s
}

// get returns the offer with an id, nil if there is none.
func (all *offers) get(of offeree, id string) *offer {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.of[of] {
		if o.id == id {
			return o
		}
	}
	return nil
}

// drop ends what a session was offered, with it.
func (all *offers) drop(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, o := range all.of[s] {
		o.end(errDeclined)
	}
	delete(all.of, s)
}

// An offer is a login that a host was offered.
type offer struct {
	id     string
	server string
	advice string          // what the failure that it came of says to do
	asking chan struct{}   // holds a token while the host has the question as a request
	shown  chan struct{}   // closed when the address is known
	over   chan struct{}   // closed when nothing more comes of the login
	ctx    context.Context // ends soon after over is closed
	end    context.CancelCauseFunc

	asked    atomic.Bool // as a request
	accepted atomic.Bool // the user goes to the page

	address string // set before shown is closed

	// Set before over is closed.
	err   error // nil is a login that was made
	ended time.Time
}

func wantsLogin(err error) bool {
	var failure *transports.Failure
	return errors.As(err, &failure) && failure.Login
}

// failOrLogIn answers a request that failed with err, or offers its host the login that
// it failed for, and calls again after that, on a goroutine. params are those that the
// upstream would have had, nil where it is not that far.
func (s *session) failOrLogIn(r *host.Request, params json.RawMessage, err error, asText bool, again func()) {
	o, err := s.offerLogin(r, err)
	if o == nil {
		s.fail(r, err, asText)
		return
	}
	late := isClosed(o.over)
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		select {
		case <-o.shown:
		case <-o.over:
		case <-ctx.Done():
		}
		switch {
		case r.Era == transports.Stateless && ctx.Err() == nil && !isClosed(o.over) && !o.accepted.Load():
			r.Reply(s.agg.loginQuestion(o, params), nil)
			return
		case r.Era == transports.Handshake:
			o.ask(ctx, r)
		}
		r.NoOffer = r.NoOffer || !late
		switch cause := s.agg.awaitLogin(ctx, r, o); {
		case cause == nil:
			again()
		case ctx.Err() != nil:
			s.fail(r, transports.CutOff(o.server, transports.NotSent), asText)
		default:
			s.fail(r, withLogin(err, cause), asText)
		}
	})
}

// offerLogin returns the login that the host of a request is to be offered, nil if it
// is not, and the error to answer with then.
func (s *session) offerLogin(r *host.Request, err error) (*offer, error) {
	var failure *transports.Failure
	if !errors.As(err, &failure) || !failure.Login || s.agg.opts.LogIn == nil || !ask.MayNeedInput(r.Method) {
		return nil, err
	}
	u := s.agg.set.Get(failure.Upstream)
	if u == nil || !s.mayLogIn {
		return nil, err
	}
	capabilities := wire.Get(r.Meta, transports.MetaCapabilities)
	if r.Era == transports.Handshake {
		capabilities = s.declaration().capabilities
	}
	if ask.Lacks(capabilities, "elicitation/create", json.RawMessage(`{"mode":"url"}`)) != "" {
		return nil, err
	}
	s.agg.offered.mu.Lock()
	defer s.agg.offered.mu.Unlock()
	known := s.agg.offered.of[s.offeree()]
	o := known[failure.Upstream]
	switch {
	case o != nil && !isClosed(o.over):
		return o, err
	case o == nil || time.Since(o.ended) > offerPause || o.advice != failure.Advice():
	case o.err != nil:
		return nil, withLogin(err, o.err)
	case !r.Repeated: // it was refused before that login, maybe
		r.Repeated = true
		return o, err
	}
	if r.NoOffer {
		return nil, err
	}
	o = s.newOffer(u.Server, failure.Advice())
	if o == nil {
		return nil, err
	}
	if known == nil {
		known = map[string]*offer{}
		s.agg.offered.of[s.offeree()] = known
	}
	known[failure.Upstream] = o
	return o, err
}

// newOffer begins a login, nil after Close.
func (s *session) newOffer(server schema.Server, advice string) *offer {
	o := &offer{
		id: "dynmcp-" + rand.Text(), server: server.Name, advice: advice,
		asking: make(chan struct{}, 1), shown: make(chan struct{}), over: make(chan struct{}),
	}
	o.ctx, o.end = context.WithCancelCause(s.agg.ctx)
	begun := s.agg.work.Go(func() {
		defer o.end(nil)
		err := errors.New("internal error")
		defer func() {
			if o.asked.Load() {
				s.peer.Notify("notifications/elicitation/complete", fmt.Appendf(nil, `{"elicitationId":%s}`, wire.Quote(o.id)))
			}
			o.err, o.ended = err, time.Now()
			close(o.over)
		}()
		ctx, cancel := context.WithTimeoutCause(o.ctx, offeredFor, errors.New("nobody has logged in in time"))
		defer cancel()
		noPage := time.AfterFunc(pageWait, func() { o.end(errors.New("its login page was not found in time")) })
		defer noPage.Stop()
		err = s.agg.opts.LogIn(ctx, server, func(address string) {
			if noPage.Stop() {
				o.address = address
				close(o.shown)
			}
		})
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil && !errors.Is(err, errDeclined) {
			s.agg.log.Warn("an offered login failed", "upstream", server.Name, "err", err)
		}
	})
	if !begun {
		o.end(nil)
		return nil
	}
	return o
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// withLogin adds to the failure of a request what came of the login that was offered
// for it.
func withLogin(err, cause error) error {
	var failure *transports.Failure
	if errors.Is(cause, errDeclined) || !errors.As(err, &failure) {
		return err
	}
	said := *failure
	said.Cause = fmt.Errorf("%w; the login that was offered failed: %v", failure.Cause, cause)
	return &said
}

// awaitLogin waits for the end of a login, and returns why there is none.
func (a *Aggregator) awaitLogin(ctx context.Context, r *host.Request, o *offer) error {
	if token := wire.Get(r.Meta, "progressToken"); token != nil {
		stop := a.reportWait(ctx, r.Peer, token, "waiting for the login at "+o.server)
		defer stop()
	}
	select {
	case <-o.over:
		return o.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// elicitation is what the host is asked.
func (o *offer) elicitation() json.RawMessage {
	text := o.server + " wants a login. Log in on its page, as yourself: what was called goes on after that."
	return fmt.Appendf(nil, `{"mode":"url","message":%s,"url":%s}`, wire.Quote(text), wire.Quote(o.address))
}

// ask asks a host of the handshake era, unless it agreed already, and returns when it
// has answered, the login is over or ctx ends. A no ends the login.
func (o *offer) ask(ctx context.Context, r *host.Request) {
	select {
	case o.asking <- struct{}{}:
		defer func() { <-o.asking }()
	case <-o.over:
		return
	case <-ctx.Done():
		return
	}
	if o.accepted.Load() || isClosed(o.over) {
		return
	}
	o.asked.Store(true)
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	defer context.AfterFunc(o.ctx, withdraw)() // hosts may answer when all is done
	answer, err := r.Peer.Request(asking, "elicitation/create", wire.Set(o.elicitation(), "elicitationId", wire.Quote(o.id)))()
	switch {
	case wire.EqualString(wire.Get(answer, "action"), "accept"):
		o.accepted.Store(true)
	case asking.Err() != nil: // the request ended, which says nothing of the login, or the login did
		return
	case err != nil:
		o.end(fmt.Errorf("the host did not show the page: %w", err))
	default:
		o.end(errDeclined)
	}
}

// statePrefixOffer begins the requestState of a request that was answered with a login.
// Behind it are the id of the offer, in base64 what the request had of the rounds
// before, its requestState sealed as it was, and in a cluster, sealed, the replica that
// has the offer.
const statePrefixOffer = "dynmcp-login."

// loginQuestion is the result that has a host of the stateless era ask its user. params may
// be nil.
func (a *Aggregator) loginQuestion(o *offer, params json.RawMessage) json.RawMessage {
	rounds := []byte("{}")
	for _, name := range []string{"requestState", "inputResponses"} {
		if value := wire.Get(params, name); value != nil {
			rounds = wire.Set(rounds, name, value)
		}
	}
	state := statePrefixOffer + o.id + "." + base64.RawURLEncoding.EncodeToString(rounds)
	if a.opts.Replica != "" {
		state += "." + a.sealState(requestState{Owner: a.opts.Replica})
	}
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"login":{"method":"elicitation/create","params":%s}},"requestState":%s}`,
		o.elicitation(), wire.Quote(state))
}

// resumeOffer takes a request that was answered with a login, and reports whether it
// did; false is that it goes on as it is.
func (s *session) resumeOffer(r *host.Request) bool {
	state, _ := wire.Text(r.Outline.Get(r.Params, "requestState"))
	state, ours := strings.CutPrefix(state, statePrefixOffer)
	if !ours {
		return false
	}
	id, text, _ := strings.Cut(state, ".")
	text, _, _ = strings.Cut(text, ".")
	rounds, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !wire.IsObject(rounds) || !wire.Valid(rounds) {
		r.Reply(nil, staleState())
		return true
	}
	accepted := wire.EqualString(wire.Get(r.Params, "inputResponses", "login", "action"), "accept")
	r.Params, r.Outline = wire.Delete(r.Params, "requestState", "inputResponses"), nil // they are no longer lent
	for _, name := range []string{"requestState", "inputResponses"} {
		if value := wire.Get(rounds, name); value != nil {
			r.Params = wire.Set(r.Params, name, value)
		}
	}
	o := s.agg.offered.get(s.offeree(), id)
	switch {
	case o == nil: // of long ago
		return false
	case !accepted:
		o.end(errDeclined)
	default:
		o.accepted.Store(true)
	}
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		// Where no login was made the request fails again, and says so.
		_ = s.agg.awaitLogin(ctx, r, o)
		r.NoOffer = true
		s.handle(r)
	})
	return true
}
