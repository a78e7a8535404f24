package aggregator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/transports/upstream"
)

// askWait bounds what we ask an upstream on our own account.
const askWait = 30 * time.Second

// A peer is what an upstream talks to, over all its connections.
type peer struct {
	agg      *Aggregator
	upstream *lazy.Upstream
	legacy   atomic.Bool // its last connection made the initialize handshake
	held     atomic.Bool // it is eager, and its start was seen to
	shown    shown       // URIs that its results held

	mu       sync.Mutex
	conn     *upstream.Conn // the one that may change the listing
	listing  *catalog.Listing
	flights  []*flight       // oldest first
	stale    map[string]bool // list methods to be fetched anew
	changes  int             // how often one was announced to be
	fetched  time.Time       // when the last fetch ended
	fetching chan struct{}   // closed when no list is being fetched any more; nil while none is
}

func (a *Aggregator) peerOf(u *lazy.Upstream) *peer {
	if p, ok := a.peers.Load(u); ok {
		return p.(*peer)
	}
	p, _ := a.peers.LoadOrStore(u, &peer{agg: a, upstream: u, stale: map[string]bool{}})
	return p.(*peer)
}

// use makes a new connection and what it listed the current ones. A change
// that was announced while it listed is fetched now.
func (p *peer) use(conn *upstream.Conn, l *catalog.Listing) {
	p.install(func() *catalog.Listing {
		p.conn = conn
		return l
	})
	p.refresh()
}

// install puts the listing that choose returns into the catalogue, nil is
// none. The lock is held over both, so that the listing of an old connection
// never replaces that of a new one; the catalogue does no I/O.
func (p *peer) install(choose func() *catalog.Listing) {
	before := p.agg.catalog.View()
	if p.put(choose) {
		p.agg.installed(before)
	}
}

// put reports whether it changed the catalogue. An upstream that a new config
// replaced changes nothing any more.
func (p *peer) put(choose func() *catalog.Listing) bool {
	p.agg.reload.RLock()
	defer p.agg.reload.RUnlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	l := choose()
	if l == nil || !p.agg.isCurrent(p.upstream) || !p.agg.catalog.Put(p.upstream.Server.Name, l) {
		return false
	}
	p.listing = l
	return true
}

func (p *peer) add(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flights = append(p.flights, f)
}

func (p *peer) remove(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.flights, f); i >= 0 {
		p.flights = slices.Delete(p.flights, i, i+1)
	}
}

// Notify implements transports.Peer.
func (p *peer) Notify(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed":
		p.outdated("tools/list")
	case "notifications/prompts/list_changed":
		p.outdated("prompts/list")
	case "notifications/resources/list_changed":
		p.outdated("resources/list", "resources/templates/list")
	case "notifications/message":
		p.tell(method, p.named(params), (*flight).wantsLog)
	case "notifications/resources/updated":
		p.agg.updated(params)
	default:
		p.tell(method, params, func(*flight) bool { return true })
	}
}

// concernsAll reports whether a notification is about what the upstream has, and
// not about a call, whatever stream it came on.
func concernsAll(method string) bool {
	return method == "notifications/resources/updated" || strings.HasSuffix(method, "/list_changed")
}

// tell passes a notification on: to every host of the handshake era, and to one
// of the stateless era while a request of its is in flight here that wants it.
func (p *peer) tell(method string, params json.RawMessage, wants func(*flight) bool) {
	p.agg.tell(method, params)
	p.mu.Lock()
	flights := slices.Clone(p.flights)
	p.mu.Unlock()
	told := map[*session]bool{}
	for _, f := range flights {
		if f.request.Modern && f.request.Peer != nil && !told[f.session] && wants(f) {
			told[f.session] = true
			f.request.Peer.Notify(method, params)
		}
	}
}

// named puts the upstream's name in front of a log message's logger.
func (p *peer) named(params json.RawMessage) json.RawMessage {
	if p.agg.config().SingleWrap {
		return params
	}
	name := p.upstream.Server.Name
	if logger, ok := wire.Text(wire.Get(params, "logger")); ok {
		name += "/" + logger
	}
	return wire.Set(params, "logger", wire.Quote(name))
}

// outdated has lists fetched anew: one fetch at a time, and another after it
// if something changed meanwhile.
func (p *peer) outdated(methods ...string) {
	p.mu.Lock()
	for _, method := range methods {
		p.stale[method] = true
	}
	p.changes++
	p.mu.Unlock()
	p.refresh()
}

func (p *peer) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fetching != nil || p.conn == nil || len(p.stale) == 0 {
		return
	}
	p.fetching = make(chan struct{})
	p.agg.spawn(p.fetch)
}

// refreshWait is how long a host that asks for a list waits for one that is
// being fetched anew.
const refreshWait = 2 * time.Second

// awaitRefresh returns when no upstream's lists are being fetched, or it took
// too long. A host that was told of a change must not read the list of before.
func (a *Aggregator) awaitRefresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshWait)
	defer cancel()
	for _, u := range a.set.All() {
		p := a.peerOf(u)
		p.mu.Lock()
		fetching := p.fetching
		p.mu.Unlock()
		if fetching == nil {
			continue
		}
		select {
		case <-fetching:
		case <-ctx.Done():
			return
		}
	}
}

// A burst of changes costs two fetches: one at its beginning, one when nothing
// has changed for quiet, or after longestBurst for who never stops.
const (
	quiet        = 50 * time.Millisecond
	longestBurst = 5 * time.Second
)

func (p *peer) fetch() {
	for {
		p.awaitQuiet()
		p.mu.Lock()
		conn, stale := p.conn, p.stale
		p.stale = map[string]bool{}
		if len(stale) == 0 {
			close(p.fetching)
			p.fetching = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		p.fetchFrom(conn, stale)
		p.mu.Lock()
		p.fetched = time.Now()
		p.mu.Unlock()
	}
}

// awaitQuiet returns when a burst of changes is over, at once where it may be one
// change.
func (p *peer) awaitQuiet() {
	seen, more := p.burst()
	for end := time.Now().Add(longestBurst); more && time.Now().Before(end); {
		select {
		case <-time.After(quiet):
		case <-p.agg.ctx.Done():
			return
		}
		before := seen
		seen, _ = p.burst()
		more = seen != before
	}
}

// burst returns how many changes were announced so far, and whether one came
// soon after a fetch.
func (p *peer) burst() (changes int, goesOn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes, len(p.stale) > 0 && time.Since(p.fetched) < quiet
}

// fetchFrom replaces lists. A list that cannot be fetched stays as it was, and
// one of a connection that is not current any more changes nothing.
func (p *peer) fetchFrom(conn *upstream.Conn, stale map[string]bool) {
	defer p.agg.recovered() // or nothing would ever be fetched again
	ctx, cancel := context.WithTimeout(p.agg.ctx, askWait)
	defer cancel()
	fetched := map[string][]json.RawMessage{}
	for _, which := range lists {
		if !stale[which.method] || !conn.ServerInfo().Has(which.capability) {
			continue
		}
		entries, err := p.agg.listOne(ctx, conn, which.method, which.key)
		if err != nil {
			p.agg.log.Warn("list not refreshed, the last one stays", "upstream", conn.Name(), "err", err)
			continue
		}
		fetched[which.method] = entries
	}
	p.install(func() *catalog.Listing {
		if p.conn != conn || len(fetched) == 0 {
			return nil
		}
		l := *p.listing
		for _, which := range lists {
			if entries, ok := fetched[which.method]; ok {
				*which.into(&l) = entries
			}
		}
		return &l
	})
}
