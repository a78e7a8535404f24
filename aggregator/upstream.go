package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// requestTimeout bounds what we ask an upstream on our own account.
const requestTimeout = 30 * time.Second

// Notify implements transports.Peer.
func (p *peer) Notify(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		p.listing.markStale(method)
	case "notifications/message":
		p.notifyHosts(method, params, func(c *forwardedCall) bool { return c.wantsLog(params) })
	case "notifications/resources/updated":
		p.resourceUpdated(params)
	case "notifications/tasks": // of the stateless era
		p.taskUpdated(params)
	case "notifications/tasks/status", "notifications/elicitation/complete": // the handshake era has them
		own, _ := wire.Text(wire.Get(params, "taskId"))
		if p.agg.mayLearnTask(p.upstream, own) {
			params = bytes.Clone(params)
			p.agg.work.Go(func() {
				p.agg.learnTask(p.agg.ctx, p.upstream, own)
				p.notifyHosts(method, params, func(*forwardedCall) bool { return false })
			})
			return
		}
		p.notifyHosts(method, params, func(*forwardedCall) bool { return false })
	default:
		p.notifyHosts(method, params, func(*forwardedCall) bool { return true })
	}
}

// isAboutUpstream reports whether a notification is about what the upstream has,
// and not about a call, whatever stream it came on.
func isAboutUpstream(method string) bool {
	return method == "notifications/resources/updated" || method == "notifications/elicitation/complete" || strings.HasPrefix(method, "notifications/tasks") || strings.HasSuffix(method, "/list_changed")
}

// notifyHosts passes a notification on: to hosts of the handshake era, and to one
// of the stateless era while a request of its is in flight here that wants it.
func (p *peer) notifyHosts(method string, params json.RawMessage, wants func(*forwardedCall) bool) {
	calls, verbose := p.calls.all(), p.verbose()
	newest := map[*session]*forwardedCall{} // of a host of the handshake era, which waits there, and need not listen elsewhere
	for _, c := range calls {
		if c.session.shares && c.hostRequest().Era == transports.Handshake {
			newest[c.session] = c
		}
	}
	for _, s := range p.audience(method, params, calls) {
		if method == "notifications/message" && !s.wantsLog(params, verbose) {
			continue
		}
		if c := newest[s]; c != nil {
			c.tell(method, p.shown(s, method, params))
		} else {
			s.notify(method, p.shown(s, method, params), func(listen) bool { return false })
		}
	}
	notified := map[*session]bool{}
	for _, c := range calls {
		if c.hostRequest().Era == transports.Stateless && !c.session.replica && !notified[c.session] && wants(c) {
			notified[c.session] = true
			c.tell(method, p.shown(c.session, method, params))
		}
	}
}

// shown returns the params of a notification as a session's host is to see them.
func (p *peer) shown(s *session, method string, params json.RawMessage) json.RawMessage {
	params = p.shownRelation(s, params)
	switch method {
	case "notifications/message":
		return p.named(s, params)
	case "notifications/tasks", "notifications/tasks/status", "notifications/elicitation/complete":
		return p.shownID(s, params, "taskId")
	}
	return params
}

// named puts the upstream's name in front of a log message's logger, for sessions that
// see others too.
func (p *peer) named(s *session, params json.RawMessage) json.RawMessage {
	if s.single() != nil {
		return params
	}
	name := p.upstream.Server.Name
	if logger, ok := wire.Text(wire.Get(params, "logger")); ok {
		name += "/" + logger
	}
	return wire.Set(params, "logger", wire.Quote(name))
}

// A listing keeps what the catalogue has of an upstream up to date.
type listing struct {
	agg      *Aggregator
	upstream *lazy.Upstream

	mu       sync.Mutex
	conn     *upstream.Conn   // the one that may change the listing
	last     *catalog.Listing // what is in the catalogue, nil before the first
	stale    map[string]bool  // list methods to be fetched
	changes  int              // how often one became stale
	fetched  time.Time        // when the last fetch ended
	fetching chan struct{}    // closed when no list is being fetched any more; nil while none is
	keeping  bool             // last is being stored
	unkept   bool             // it is another than was stored or is being stored
}

// adopt makes a new connection and what it listed the current ones. A change
// that was announced while it listed is fetched now, a list that failed later.
func (l *listing) adopt(conn *upstream.Conn, listed *catalog.Listing) {
	l.install(conn, listed, true)
	l.refresh()
	for _, which := range lists {
		if listed.Failed[which.method] != "" {
			l.agg.work.Go(func() { l.retry(conn, which) })
		}
	}
}

// The pauses before a list that failed is asked for again: each is four times
// as long as the one before.
const (
	firstRetry = time.Second
	lastRetry  = 20 * time.Minute
)

// retry asks for a list that failed until it is there, the connection ends or it
// was long enough in vain. Only one that can be had is fetched: hosts wait for
// what is being fetched, and need not wait for a server that does not answer.
func (l *listing) retry(conn *upstream.Conn, which list) {
	for pause := firstRetry; pause <= lastRetry; pause *= 4 {
		select {
		case <-time.After(pause):
		case <-conn.Done():
			return
		case <-l.agg.ctx.Done():
			return
		}
		l.mu.Lock()
		missing := l.conn == conn && l.last != nil && l.last.Failed[which.method] != "" // and was not fetched since
		l.mu.Unlock()
		if !missing {
			return
		}
		ctx, cancel := context.WithTimeout(l.agg.ctx, requestTimeout)
		_, err := l.agg.listOne(ctx, conn, which)
		cancel()
		if err == nil {
			l.setStale(which)
			l.refresh()
		}
	}
}

// install puts what a connection listed into the catalogue.
func (l *listing) install(conn *upstream.Conn, listed *catalog.Listing, adopt bool) {
	before := l.agg.catalog.View()
	if l.put(conn, listed, adopt) {
		l.agg.installed(before)
		l.keep()
	}
}

// put reports whether it changed the catalogue. Neither a connection that is not
// the current one nor an upstream that a new config replaced changes anything:
// the locks are held over that check and the change, but not over the work that
// grows with the listing: whoever reads the upstream waits for them too.
func (l *listing) put(conn *upstream.Conn, listed *catalog.Listing, adopt bool) bool {
	indexed := l.agg.catalog.Index(l.upstream.Server.Name, listed)
	l.agg.reload.RLock()
	defer l.agg.reload.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if adopt {
		l.conn = conn
	}
	if l.conn != conn || !l.agg.set.Has(l.upstream) || !l.agg.catalog.Put(l.upstream.Server.Name, indexed) {
		return false
	}
	l.last = listed
	return true
}

// markStale has the lists fetched that a notification is about: one fetch at a
// time, and another after it if something changed meanwhile.
func (l *listing) markStale(changed string) {
	for _, which := range lists {
		if which.changed == changed {
			l.setStale(which)
		}
	}
	l.refresh()
}

func (l *listing) setStale(which list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale[which.method] = true
	l.changes++
}

func (l *listing) refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fetching != nil || !l.canFetchLocked() {
		return
	}
	l.fetching = make(chan struct{})
	l.agg.work.Go(l.fetch)
}

// canFetchLocked reports whether there is something to fetch and a connection to
// fetch it over. What becomes stale while there is none waits for the next one.
func (l *listing) canFetchLocked() bool {
	return len(l.stale) > 0 && l.last != nil && l.conn.Err() == nil
}

// underway returns a channel that is closed when no list is being fetched any more, nil
// while none is.
func (l *listing) underway() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fetching
}

// A burst of changes costs two fetches: one at its beginning, one when nothing
// has changed for quiet, or after longestBurst if changes never stop.
const (
	quiet        = 50 * time.Millisecond
	longestBurst = 5 * time.Second
)

func (l *listing) fetch() {
	for l.nextFetch() {
		l.awaitQuiet()
		l.fetchStale()
		l.mu.Lock()
		l.fetched = time.Now()
		l.mu.Unlock()
	}
}

// nextFetch reports whether there is more to fetch. If not, fetching is over.
func (l *listing) nextFetch() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.canFetchLocked() {
		return true
	}
	close(l.fetching)
	l.fetching = nil
	return false
}

// awaitQuiet returns when a burst of changes is over, at once if it may be one
// change. Something has to be stale by then: a change that comes after its look is not
// waited for.
func (l *listing) awaitQuiet() {
	seen, more := l.burst()
	for end := time.Now().Add(longestBurst); more && time.Now().Before(end); {
		select {
		case <-time.After(quiet):
		case <-l.agg.ctx.Done():
			return
		}
		before := seen
		seen, _ = l.burst()
		more = seen != before
	}
}

// burst returns how many changes were announced so far, and whether one came
// soon after a fetch.
func (l *listing) burst() (changes int, goesOn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes, time.Since(l.fetched) < quiet
}

// fetchStale fetches every list that is stale, also those that become so
// meanwhile, each of them once, and installs them together. A list that cannot be
// fetched stays as it was; one that the end of the connection kept from being
// fetched is still stale.
func (l *listing) fetchStale() {
	defer l.agg.work.Recover() // or nothing would ever be fetched again
	ctx, cancel := context.WithTimeout(l.agg.ctx, requestTimeout)
	defer cancel()
	l.mu.Lock()
	conn, last := l.conn, l.last
	l.mu.Unlock()
	if conn.Err() != nil {
		return // what is stale waits for the next one
	}
	next, changed := *last, false
	next.Failed = maps.Clone(last.Failed)
	fetched, told := map[string]bool{}, map[string]bool{}
	for more := true; more; {
		more = false
		for _, which := range lists {
			if fetched[which.method] || !l.takeStale(which) {
				continue
			}
			fetched[which.method], more = true, true
			if !conn.ServerInfo().Has(which.capability) {
				continue
			}
			entries, err := l.agg.listOne(ctx, conn, which)
			switch {
			case err == nil:
				*which.from(&next), changed, told[which.changed] = entries, true, true
				delete(next.Failed, which.method)
				continue
			case conn.Err() != nil:
				l.setStale(which)
			}
			l.agg.log.Warn("list not refreshed, the last one stays", "upstream", conn.Name(), "err", err)
		}
	}
	if changed {
		l.install(conn, &next, false)
		l.tellReplicas(told)
	}
}

func (l *listing) takeStale(which list) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	stale := l.stale[which.method]
	delete(l.stale, which.method)
	return stale
}
