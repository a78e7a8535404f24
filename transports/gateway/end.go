package gateway

import (
	"context"
	"net"
	"sync"
	"time"
)

// end shuts the gateway down, and closes ln.
//
// A single gateway accepts no more requests. One of several replicas first continues for
// DrainDelay: load balancers see the shutdown in /health, hosts are told to close their
// connections, and other replicas take new sessions. Then each session ends as soon as it
// has nothing in flight, so that its host loses nothing when it opens a new session.
func (g *Gateway) end(ctx context.Context, ln net.Listener) {
	if g.forwarder.several {
		close(g.leaving)
		g.sleep(g.forwarder.DrainDelay)
	}
	_ = ln.Close()
	g.forwarder.endLasting()
	draining, cancel := context.WithTimeout(ctx, g.drainTimeout)
	defer cancel()
	if g.forwarder.several {
		g.endQuiet(draining)
	}
	close(g.ending)
	g.running.wait(draining)
	cancel() // the rest had its time
	g.forwarder.endFinishing()
	var ends sync.WaitGroup
	for _, s := range g.sessions.all() {
		if g.sessions.retire(s, func() bool { return true }) {
			ends.Go(func() { s.drain(draining) })
		}
	}
	for e := range g.exchanges.Range {
		ends.Go(func() { e.(*exchange).end(draining) })
	}
	ends.Wait()
}

// endQuiet ends each session as soon as it has nothing in flight. It returns when all have
// ended or ctx ends.
func (g *Gateway) endQuiet(ctx context.Context) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := g.sessions.all()
		var ends sync.WaitGroup
		for _, s := range left {
			if !s.host.Waiting() && g.sessions.retire(s, func() bool { return s.users == s.reading }) {
				ends.Go(func() { s.drain(ctx) })
			}
		}
		ends.Wait()
		if len(left) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
