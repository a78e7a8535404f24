package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// listening limits the event streams that only listen, by namespace: the standalone streams
// of sessions, those of HTTP+SSE, and subscriptions/listen. The stream of a call is not
// limited, because the call may have run by then. An account may use the whole limit until
// another account needs a place. Then the newest stream of the account with the most ends.
type listening struct {
	mu sync.Mutex
	of map[string][]*place // by namespace, the oldest first
}

// A place is the place of one stream.
type place struct {
	account string      // see accountOf
	busy    func() bool // reports whether a call waits for its answer on the stream; nil means never
	end     context.CancelFunc
}

// takePlace takes a place for the stream of a request; id is the id of its message. It returns
// the request with a context that ends when another stream gets the place, and a function
// that returns the place. Without a place it denies the request and returns false.
func (g *Gateway) takePlace(w http.ResponseWriter, r *http.Request, id []byte, principal, namespace string, busy func() bool) (_ *http.Request, leave func(), ok bool) {
	ctx, end := context.WithCancel(r.Context())
	p := &place{accountOf(r, principal), busy, end}
	if !g.listening.enter(namespace, p, g.opts.MaxConnections) {
		end()
		deny(w, overload(id, "too many event streams are open: gateway.max_connections"))
		return nil, nil, false
	}
	return r.WithContext(ctx), func() {
		g.listening.leave(namespace, p)
		end()
	}, true
}

func (ls *listening) enter(namespace string, p *place, most int) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := ls.of[namespace]
	if len(all) >= most {
		old := streamToEnd(all, p.account)
		if old == nil {
			return false
		}
		old.end()
		all = slices.DeleteFunc(all, func(other *place) bool { return other == old })
	}
	ls.of[namespace] = append(all, p)
	return true
}

func (ls *listening) leave(namespace string, p *place) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	left := slices.DeleteFunc(ls.of[namespace], func(other *place) bool { return other == p })
	if ls.of[namespace] = left; len(left) == 0 {
		delete(ls.of, namespace)
	}
}

// streamToEnd returns the stream to end for a new stream of account: the newest stream of the
// account with the most. It returns nil if that account would then have fewer than account.
func streamToEnd(all []*place, account string) *place {
	has, most := map[string]int{}, account
	for _, p := range all {
		if has[p.account]++; has[p.account] > has[most] {
			most = p.account
		}
	}
	if has[most]-1 < has[account]+1 {
		return nil
	}
	for _, p := range slices.Backward(all) {
		if p.account == most && (p.busy == nil || !p.busy()) {
			return p
		}
	}
	return nil
}
