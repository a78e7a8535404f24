package gateway

import (
	"net/http"
	"sync"
)

// listens takes a place among the event streams that only listen, for a request with that
// id: the stream of a session, HTTP+SSE, subscriptions/listen. Those of a namespace have a
// limit, of which one user may have half where users are told apart. The stream of a call
// needs no place: the call may have run when it turns out to need a stream. leave gives the
// place back; false is that the request was refused.
func (g *Gateway) listens(w http.ResponseWriter, id []byte, who, namespace string) (leave func(), ok bool) {
	all, own := namespace, namespace+" "+who // namespaces have no spaces
	most := g.opts.MaxConnections
	share := most
	if g.issued != nil {
		share = (most + 1) / 2
	}
	switch {
	case !g.listening.enter(own, share):
		g.overloaded(w, id, "this user has too many event streams open: half of gateway.max_connections")
		return nil, false
	case !g.listening.enter(all, most):
		g.listening.leave(own)
		g.overloaded(w, id, "too many event streams are open: gateway.max_connections")
		return nil, false
	}
	return func() {
		g.listening.leave(all)
		g.listening.leave(own)
	}, true
}

// counters count by name, up to a limit.
type counters struct {
	mu   sync.Mutex
	open map[string]int
}

func (c *counters) enter(name string, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] >= limit {
		return false
	}
	c.open[name]++
	return true
}

func (c *counters) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name]--; c.open[name] == 0 {
		delete(c.open, name)
	}
}
