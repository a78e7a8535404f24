package gateway

import (
	"context"
	"net"
	"sync"
	"time"
)

// end ends all that hosts have of us, when Serve is to return. ln is closed.
//
// Alone, nothing new is taken from now on. Of several replicas we first serve on for a
// while, in which balancers learn from /health that we end, hosts with connections that
// they keep are told to make new ones, and others begin what begins. Then each session
// ends when nothing of it is in flight, so that its host, which makes a new one, loses
// nothing.
func (g *Gateway) end(ctx context.Context, ln net.Listener) {
	if g.redirect.several {
		close(g.leaving)
		g.sleep(g.redirect.DrainDelay)
	}
	_ = ln.Close()
	g.redirect.endLasting()
	draining, cancel := context.WithTimeout(ctx, g.drain)
	defer cancel()
	if g.redirect.several {
		g.endQuiet(draining)
	}
	close(g.ending)
	g.running.wait(draining)
	cancel() // what is left has had its time
	g.redirect.endFinishing()
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

// endQuiet ends each session when nothing of it is in flight, until all have ended or
// ctx ends.
func (g *Gateway) endQuiet(ctx context.Context) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := g.sessions.all()
		var ends sync.WaitGroup
		for _, s := range left {
			if !s.talk.Waiting() && g.sessions.retire(s, func() bool { return s.users == s.reading }) {
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
