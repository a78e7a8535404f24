package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// listening are the event streams that only listen, by namespace: those of sessions,
// HTTP+SSE and subscriptions/listen. The stream of a call is not among them: the call may
// have run when it turns out to need one. Each namespace has a limit. An account may have all
// places until others want them: then the newest stream of the account with the most ends.
type listening struct {
	mu sync.Mutex
	of map[string][]*place // the oldest first
}

// A place is that of one stream.
type place struct {
	who  string      // see accountOf
	busy func() bool // reports whether a call waits for its answer on the stream; nil is never
	end  context.CancelFunc
}

// listens takes a place for a request with that id. It returns the request with a context
// that ends when another gets the place; leave gives it back. false is that the request was
// refused.
func (g *Gateway) listens(w http.ResponseWriter, r *http.Request, id []byte, who, namespace string, busy func() bool) (_ *http.Request, leave func(), ok bool) {
	ctx, end := context.WithCancel(r.Context())
	p := &place{accountOf(r, who), busy, end}
	if !g.listening.enter(namespace, p, g.opts.MaxConnections) {
		end()
		deny(w, overload(id, "too many event streams only listen: gateway.max_connections"))
		return nil, nil, false
	}
	return r.WithContext(ctx), func() {
		g.listening.leave(namespace, p)
		end()
	}, true
}

func (ls *listening) enter(namespace string, p *place, most int) bool {
	for {
		ls.mu.Lock()
		all := ls.of[namespace]
		if len(all) < most {
			ls.of[namespace] = append(all, p)
			ls.mu.Unlock()
			return true
		}
		all = slices.Clone(all)
		ls.mu.Unlock()
		spare := spareOf(all, p.who)
		if spare == nil {
			return false
		}
		ls.leave(namespace, spare)
		spare.end()
	}
}

func (ls *listening) leave(namespace string, p *place) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	left := slices.DeleteFunc(ls.of[namespace], func(other *place) bool { return other == p })
	if ls.of[namespace] = left; len(left) == 0 {
		delete(ls.of, namespace)
	}
}

// spareOf returns the stream that gives way to another of who, nil where none does: the
// newest of the account with the most, who keeps at least as many as who gets.
func spareOf(all []*place, who string) *place {
	has, most := map[string]int{}, who
	for _, p := range all {
		if has[p.who]++; has[p.who] > has[most] {
			most = p.who
		}
	}
	if has[most]-1 < has[who]+1 {
		return nil
	}
	for _, p := range slices.Backward(all) {
		if p.who == most && (p.busy == nil || !p.busy()) {
			return p
		}
	}
	return nil
}
