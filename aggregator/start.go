package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/transports"
	"dynmcp/transports/upstream"
)

// everything is what is declared to upstreams that start before a host has
// said what it can do; what the host cannot do is refused when it is asked.
const everything = `{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`

// load brings an upstream up: connect, handshake, all lists, or nothing. It is
// what lazy calls a load. An upstream that does not survive the question for
// its era is started a second time, without it.
func (a *Aggregator) load(ctx context.Context, u *lazy.Upstream) (*upstream.Conn, error) {
	conn, err := a.loadOnce(ctx, u)
	if errors.Is(err, upstream.ErrProbe) {
		a.peerOf(u).legacy.Store(true)
		conn, err = a.loadOnce(ctx, u)
	}
	return conn, err
}

func (a *Aggregator) loadOnce(ctx context.Context, u *lazy.Upstream) (*upstream.Conn, error) {
	began := time.Now()
	p := a.peerOf(u)
	conn, err := a.open(u.Server, upstream.Options{
		Peer:    p,
		Info:    upstream.Info{Name: "dynmcp", Version: a.opts.Version},
		Logger:  a.log,
		Redact:  a.opts.Redact,
		HostEra: a.hostEra,

		HandshakeOnly: p.legacy.Load(),
	})
	if err != nil {
		return nil, err
	}
	if err := a.greet(ctx, p, conn); err != nil {
		conn.Close()
		return nil, err
	}
	p.legacy.Store(conn.Era() == transports.Handshake)
	a.log.Debug("loaded", "upstream", u.Server.Name, "took", time.Since(began).Round(time.Millisecond))
	return conn, nil
}

func (a *Aggregator) greet(ctx context.Context, p *peer, conn *upstream.Conn) error {
	capabilities, err := a.declaration(ctx, conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.upstream.Server.LoadTimeout)
	defer cancel()
	if err := conn.Handshake(ctx, capabilities); err != nil {
		return err
	}
	listing, err := a.list(ctx, conn)
	if err != nil {
		return conn.StartFailure("listing", err)
	}
	p.use(conn, listing)
	a.sendCurrentLevel(ctx, conn)
	a.renewSubscriptions(p.upstream, conn)
	return nil
}

// installed logs what is wrong with the catalogue that was not wrong before,
// and has hosts told.
func (a *Aggregator) installed(before *catalog.View) {
	known := map[string]bool{}
	for _, w := range slices.Concat(before.Collisions(), before.Warnings()) {
		known[w] = true
	}
	now := a.catalog.View()
	for _, w := range slices.Concat(now.Collisions(), now.Warnings()) {
		if !known[w] {
			a.log.Warn(w)
		}
	}
	a.touch()
}

// declaration returns the capabilities to declare to an upstream: those of the
// host. In single-wrap mode the child is there before the host has spoken, and
// may end before it does.
func (a *Aggregator) declaration(ctx context.Context, conn *upstream.Conn) (json.RawMessage, error) {
	if a.opts.Strict && !a.config().SingleWrap {
		return json.RawMessage(everything), nil
	}
	select {
	case <-a.asked:
	case <-conn.Done():
		return nil, conn.StartFailure("start", conn.Err())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.capabilities, nil
}

// hostEra returns the era of the first host, false if none has spoken yet.
func (a *Aggregator) hostEra() (era transports.Era, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.modern {
		era = transports.Stateless
	}
	return era, a.capabilities != nil
}

// The lists that make up a listing, by the capability that offers them.
var lists = []struct {
	capability, method, key string
	into                    func(*catalog.Listing) *[]json.RawMessage
}{
	{"tools", "tools/list", "tools", func(l *catalog.Listing) *[]json.RawMessage { return &l.Tools }},
	{"resources", "resources/list", "resources", func(l *catalog.Listing) *[]json.RawMessage { return &l.Resources }},
	{"resources", "resources/templates/list", "resourceTemplates", func(l *catalog.Listing) *[]json.RawMessage { return &l.Templates }},
	{"prompts", "prompts/list", "prompts", func(l *catalog.Listing) *[]json.RawMessage { return &l.Prompts }},
}

// list asks an upstream for everything it advertised, all lists at once. A
// list it advertised and does not know is empty: real servers do this.
func (a *Aggregator) list(ctx context.Context, conn *upstream.Conn) (*catalog.Listing, error) {
	info := conn.ServerInfo()
	l := &catalog.Listing{Capabilities: info.Capabilities, Info: info.Implementation, Instructions: info.Instructions, Rest: info.Extra}
	errs := make(chan error, len(lists))
	for _, which := range lists {
		go func() {
			if !info.Has(which.capability) {
				errs <- nil
				return
			}
			entries, err := a.listOne(ctx, conn, which.method, which.key)
			*which.into(l) = entries
			errs <- err
		}()
	}
	var failed error
	for range lists {
		failed = errors.Join(failed, <-errs)
	}
	return l, failed
}

func (a *Aggregator) listOne(ctx context.Context, conn *upstream.Conn, method, key string) ([]json.RawMessage, error) {
	entries, err := conn.List(ctx, method, key)
	var rpc *wire.Error
	if errors.As(err, &rpc) && rpc.Code == wire.CodeMethodNotFound {
		a.log.Warn("advertised but not known, taken as empty", "upstream", conn.Name(), "method", method)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return entries, nil
}

// begin starts the eager upstreams, once.
func (a *Aggregator) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun.IsZero() {
		a.begun = time.Now()
		a.startEagerLocked(true)
	}
}

// startEagerLocked starts the eager upstreams that were not started yet. Only
// at the start of a run can one be needed: later the run does without it.
func (a *Aggregator) startEagerLocked(first bool) {
	for _, u := range a.set.All() {
		if u.Server.Lazy() || a.peerOf(u).held.Swap(true) {
			continue
		}
		if len(a.settling) == 0 {
			a.settled = make(chan struct{})
		}
		a.settling[u] = true
		needed := first && (a.opts.Strict || a.only() == u)
		a.spawn(func() { a.hold(u, needed) })
	}
}

// The pauses between attempts to start an eager upstream in the background.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// hold starts an eager upstream and tries again until it is there; one that is
// needed ends the run instead. Once it was there, the next use brings it back.
func (a *Aggregator) hold(u *lazy.Upstream, needed bool) {
	_, release, err := u.Acquire(a.ctx)
	a.settle(u)
	for pause := firstRetry; err != nil; pause = min(2*pause, lastRetry) {
		if a.ctx.Err() != nil || errors.Is(err, lazy.ErrClosed) {
			return
		}
		if needed {
			a.cancel(&FatalError{Err: err})
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-a.ctx.Done():
			timer.Stop()
			return
		}
		_, release, err = u.Acquire(a.ctx)
	}
	release()
}

// settle notes that the first start of an eager upstream has ended.
func (a *Aggregator) settle(u *lazy.Upstream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.settling, u)
	close(a.next)
	a.next = make(chan struct{})
	if len(a.settling) == 0 {
		close(a.settled)
	}
}

// nextStart returns a channel that is closed when another of the eager upstreams
// has started or failed to, nil where there is none to wait for.
func (a *Aggregator) nextStart() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.settling) == 0 {
		return nil
	}
	return a.next
}

// awaitStart waits until the eager upstreams are there, at most startup_wait
// from when they were started.
func (a *Aggregator) awaitStart(ctx context.Context) {
	a.mu.Lock()
	settled := a.settled
	a.mu.Unlock()
	a.awaitUntil(ctx, settled)
}

// awaitUntil waits for done as long as a list waits for servers that start, and
// reports whether it came.
func (a *Aggregator) awaitUntil(ctx context.Context, done <-chan struct{}) bool {
	a.mu.Lock()
	left := time.Until(a.begun.Add(a.config().StartupWait))
	a.mu.Unlock()
	timer := time.NewTimer(max(left, 0))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	case <-a.ctx.Done():
	}
	return false
}

// starting reports whether an upstream is being started.
func (a *Aggregator) starting() bool {
	for _, u := range a.set.All() {
		if u.Status().State == lazy.Loading {
			return true
		}
	}
	return false
}
