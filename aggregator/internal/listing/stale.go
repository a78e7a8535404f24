package listing

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Refetch fetches the lists that a notification names because the server has refused a request
// for an entry of them. It returns a channel that is closed at the end, nil if nothing is
// fetched. What does not help is bounded, together with Recheck.
func (c *Cache) Refetch(changed string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.rechecked) > recheckTime {
		c.rechecked, c.rechecks = time.Now(), 0
	}
	if c.last == nil || c.conn.Err() != nil || c.rechecks == maxRechecks {
		return nil
	}
	c.rechecks++
	done := make(chan struct{})
	if !c.env.Work.Go(func() {
		defer close(done)
		c.Invalidate(changed)
		c.awaitRefresh()
	}) {
		return nil
	}
	return done
}

// Has reports whether a list of the connection has an entry with that value of a member.
func (c *Cache) Has(conn *upstream.Conn, method, member, value string) bool {
	list, _ := Of(method)
	entries, _ := c.Entries(conn, list)
	return slices.ContainsFunc(entries, func(e json.RawMessage) bool { return wire.EqualString(wire.Get(e, member), value) })
}
