package listing

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// requestTimeout bounds each refresh.
const requestTimeout = 30 * time.Second

// An Env is the environment of the caches in their aggregator.
type Env struct {
	Context context.Context // ends with the aggregator
	Log     *slog.Logger
	Catalog *catalog.Catalog
	Set     *lazy.Set
	Config  sync.Locker // held while an upstream of the config is looked up and published

	Work *work.Group
	Run  Run
}

// A Run uses the listings.
type Run interface {
	// Listed is called when the catalogue has changed by what an upstream has listed. before is the view
	// of those to whom it lists.
	Listed(u *lazy.Upstream, before *catalog.View)
	// Refreshed is called with the refetched lists of a connection, by notification.
	Refreshed(u *lazy.Upstream, changed map[string]bool)
	// Keep stores a listing.
	Keep(u *lazy.Upstream, l *catalog.Listing)
}

// A Cache keeps the catalogue's listing of one upstream current.
type Cache struct {
	env       *Env
	upstream  *lazy.Upstream
	principal string // whose listing it is, "" for everybody's

	mu         sync.Mutex
	conn       *upstream.Conn    // the only one that may change the listing
	last       *catalog.Listing  // in the catalogue, nil before the first
	digests    map[string]string // of its tools, by name; nil if they need no approval
	stale      map[string]bool   // the methods of lists to fetch
	changes    int               // how often a list became stale
	fetched    time.Time         // when the last refresh ended
	refreshing chan struct{}     // closed when refreshing ends; nil while nothing is fetched
	keeping    bool              // last is being stored
	unkept     bool              // last is newer than what is stored or being stored
	rechecked  time.Time         // when the first recheck that counts was made
	rechecks   int               // since then, and since the last that found a change
}

// NewCache returns an empty cache. principal is the one whose listing it is, "" if it is everybody's.
func NewCache(env *Env, u *lazy.Upstream, principal string) *Cache {
	return &Cache{env: env, upstream: u, principal: principal, stale: map[string]bool{}}
}

// Adopt makes a new connection and its listing the current ones. A change that was announced
// meanwhile is fetched now, a list that failed later.
func (c *Cache) Adopt(conn *upstream.Conn, listed *catalog.Listing) {
	c.publish(conn, listed, true)
	c.refresh()
	for _, list := range Lists {
		if listed.Failed[list.Method] != "" {
			c.env.Work.Go(func() { c.retry(conn, list) })
		}
	}
}

// Invalidate schedules a refresh of the lists that a notification names: one refresh runs at a
// time, and another follows if something changed meanwhile.
func (c *Cache) Invalidate(changed string) {
	for _, list := range Lists {
		if list.Changed == changed {
			c.setStale(list)
		}
	}
	c.refresh()
}

// At most maxRechecks of rechecks that find no change are made in recheckTime.
const (
	maxRechecks = 5
	recheckTime = 10 * time.Second
)

// Recheck fetches the tools anew because one is asked for that is not listed: the server's
// notification may follow the answer that names the tool, or be missing. A listed one is hidden
// from hosts. It returns a channel that is closed at the end, nil if nothing is fetched.
func (c *Cache) Recheck(tool string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.rechecked) > recheckTime {
		c.rechecked, c.rechecks = time.Now(), 0
	}
	if !c.mayMissLocked(tool) || c.rechecks == maxRechecks {
		return nil
	}
	c.rechecks++
	done := make(chan struct{})
	if !c.env.Work.Go(func() { defer close(done); c.recheck(tool) }) {
		return nil
	}
	return done
}

// mayMissLocked reports whether a connected server may have a tool that is not listed.
func (c *Cache) mayMissLocked(tool string) bool {
	return c.last != nil && c.conn.Err() == nil && !slices.ContainsFunc(c.last.Tools, func(t json.RawMessage) bool {
		return wire.EqualString(wire.Get(t, "name"), tool)
	})
}

// recheck waits for a refresh in progress, and fetches the tools if the tool is not in it.
func (c *Cache) recheck(tool string) {
	c.awaitRefresh()
	c.mu.Lock()
	missing, conn, last := c.mayMissLocked(tool), c.conn, c.last.Tools
	if !missing {
		c.rechecks = 0 // the server's notification came first
	}
	c.mu.Unlock()
	if !missing {
		return
	}
	ctx, cancel := context.WithTimeout(c.env.Context, requestTimeout)
	defer cancel()
	tools, err := Lists[0].fetch(ctx, conn, nil, c.env.Log)
	if err != nil || slices.EqualFunc(last, tools, slices.Equal) {
		return
	}
	c.mu.Lock()
	c.rechecks = 0
	c.mu.Unlock()
	c.Invalidate(Lists[0].Changed)
	c.awaitRefresh()
}

func (c *Cache) awaitRefresh() {
	if fetching := c.Refreshing(); fetching != nil {
		<-fetching
	}
}

// Refreshing returns a channel that is closed when the current refresh ends, nil if there is
// none.
func (c *Cache) Refreshing() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refreshing
}

// Entries returns a list of the connection. ok is false if it is unknown.
func (c *Cache) Entries(conn *upstream.Conn, list List) (entries []json.RawMessage, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn || c.last == nil || c.last.Failed[list.Method] != "" {
		return nil, false
	}
	return *list.of(c.last), true
}

// Digest returns the digest of a listed tool of the connection, "" if unknown.
func (c *Cache) Digest(conn *upstream.Conn, tool string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn {
		return ""
	}
	return c.digests[tool]
}

// Pauses between attempts to fetch a failed list: each is four times as long as the previous
// one.
const (
	firstRetry = time.Second
	lastRetry  = 20 * time.Minute
)

// retry requests a failed list until it succeeds, the connection ends or the pauses are used up. The
// refresh follows the first success: requests of hosts wait for a refresh, and must not wait
// for a server that does not answer.
func (c *Cache) retry(conn *upstream.Conn, list List) {
	for pause := firstRetry; pause <= lastRetry; pause *= 4 {
		select {
		case <-time.After(pause):
		case <-conn.Done():
			return
		case <-c.env.Context.Done():
			return
		}
		c.mu.Lock()
		missing := c.conn == conn && c.last != nil && c.last.Failed[list.Method] != "" // and was not fetched since
		c.mu.Unlock()
		if !missing {
			return
		}
		ctx, cancel := context.WithTimeout(c.env.Context, requestTimeout)
		_, err := list.fetch(ctx, conn, nil, c.env.Log)
		cancel()
		if err == nil {
			c.setStale(list)
			c.refresh()
		}
	}
}

// publish puts the listing of a connection into the catalogue.
func (c *Cache) publish(conn *upstream.Conn, listed *catalog.Listing, adopt bool) {
	before := c.env.Catalog.ViewFor(c.principal)
	if c.put(conn, listed, adopt) {
		c.env.Run.Listed(c.upstream, before)
		c.Keep()
	}
}

// put reports whether it changed the catalogue. A connection that is not current, or whose upstream
// a new config has replaced, changes nothing. The locks are held during that check and the
// change, but not during the indexing: the upstream's reader waits for them too.
func (c *Cache) put(conn *upstream.Conn, listed *catalog.Listing, adopt bool) bool {
	name := c.upstream.Server.Name
	indexed := c.env.Catalog.IndexFor(c.principal, name, listed)
	digests := indexed.Digests()
	c.env.Config.Lock()
	defer c.env.Config.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if adopt {
		c.conn = conn
	}
	if c.conn != conn || !c.env.Set.Has(c.upstream) || !c.env.Catalog.PutFor(c.principal, name, indexed) {
		return false
	}
	c.last, c.digests = listed, digests
	return true
}

func (c *Cache) setStale(list List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale[list.Method] = true
	c.changes++
}

func (c *Cache) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refreshing == nil && c.mayFetchLocked() {
		c.refreshing = make(chan struct{})
		c.env.Work.Go(c.fetchAll)
	}
}

// mayFetchLocked reports whether a list is stale and the connection is open. Lists that become
// stale without a connection wait for the next one.
func (c *Cache) mayFetchLocked() bool {
	return len(c.stale) > 0 && c.last != nil && c.conn.Err() == nil
}

// A burst of changes costs two fetches: one at its beginning, one when nothing has changed
// for quiet, or after longestBurst if changes never stop.
const (
	quiet        = 50 * time.Millisecond
	longestBurst = 5 * time.Second
)

func (c *Cache) fetchAll() {
	for c.more() {
		c.awaitQuiet()
		c.fetchStale()
		c.mu.Lock()
		c.fetched = time.Now()
		c.mu.Unlock()
	}
}

// more reports whether there is more to fetch. If not, the refresh is over.
func (c *Cache) more() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mayFetchLocked() {
		return true
	}
	close(c.refreshing)
	c.refreshing = nil
	return false
}

// awaitQuiet returns when a burst of changes is over, at once if there is no sign of one.
// A list must be stale before: a later change is not waited for.
func (c *Cache) awaitQuiet() {
	seen, more := c.burst()
	for end := time.Now().Add(longestBurst); more && time.Now().Before(end); {
		select {
		case <-time.After(quiet):
		case <-c.env.Context.Done():
			return
		}
		before := seen
		seen, _ = c.burst()
		more = seen != before
	}
}

// burst returns how many changes were announced so far, and whether one came soon after a
// refresh.
func (c *Cache) burst() (changes int, goesOn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes, time.Since(c.fetched) < quiet
}

// fetchStale fetches every stale list once, including those that become stale meanwhile, and
// publishes them together. A list that cannot be fetched is kept unchanged; if the connection
// ended, it is still stale.
func (c *Cache) fetchStale() {
	defer c.env.Work.Recover() // a panic would prevent all later refreshes
	ctx, cancel := context.WithTimeout(c.env.Context, requestTimeout)
	defer cancel()
	c.mu.Lock()
	conn, next := c.conn, *c.last
	c.mu.Unlock()
	if conn.Err() != nil {
		return // stale lists wait for the next one
	}
	next.Failed, next.Refreshed = maps.Clone(next.Failed), true
	fetched, changed := map[string]bool{}, map[string]bool{}
	for more := true; more; {
		more = false
		for _, list := range Lists {
			if fetched[list.Method] || !c.takeStale(list) {
				continue
			}
			fetched[list.Method], more = true, true
			if !conn.ServerInfo().Has(list.Capability) {
				continue
			}
			entries, err := list.fetch(ctx, conn, nil, c.env.Log)
			switch {
			case err == nil:
				*list.of(&next), changed[list.Changed] = entries, true
				delete(next.Failed, list.Method)
				continue
			case conn.Err() != nil:
				c.setStale(list)
			}
			c.env.Log.Warn("list not refreshed, the last one stays", "upstream", conn.Name(), "err", err)
		}
	}
	if len(changed) > 0 {
		if approval.Needed(c.upstream.Server) != approval.Off {
			ReadPages(ctx, conn, &next, c.env.Log)
		}
		c.publish(conn, &next, false)
		c.env.Run.Refreshed(c.upstream, changed)
	}
}

func (c *Cache) takeStale(list List) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	stale := c.stale[list.Method]
	delete(c.stale, list.Method)
	return stale
}
