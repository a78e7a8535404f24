package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

const (
	loginTime = 5 * time.Minute  // that a login may take
	pageWait  = 30 * time.Second // until there is a page to open
)

// A begun is a login of a user that is not over.
type begun struct {
	shown   chan struct{} // closed when there is an address
	over    chan struct{}
	address string
	err     error
}

// The begunLogins are those of a gateway, at most one for a user and a server.
type begunLogins struct {
	mu   sync.Mutex
	all  map[[2]string]*begun // by user and server
	ctx  context.Context
	end  context.CancelFunc
	wait sync.WaitGroup
}

// End ends the logins that are not over.
func (p *route) End() {
	p.begun.end()
	p.begun.wait.Wait()
}

// login answers with the address at which a user logs in to a server.
func (p *route) login(w http.ResponseWriter, r *http.Request, principal, name string) {
	for _, s := range p.cfg.Load().Servers {
		if s.Name != name || s.Disabled || !takesLogin(s) {
			continue
		}
		if !p.logins.Reaches() {
			deny(w, http.StatusConflict, errors.New("browsers cannot come back to this gateway: its config has no gateway.public_url"))
			return
		}
		b := p.begin(s, principal)
		select {
		case <-b.shown:
			answer(w, http.StatusOK, map[string]string{"address": b.address})
		case <-b.over:
			deny(w, http.StatusBadGateway, cmp.Or(b.err, errors.New("the server asks for no login")))
		case <-time.After(pageWait):
			deny(w, http.StatusGatewayTimeout, fmt.Errorf("the login page of %q was not found in time", name))
		case <-r.Context().Done():
		}
		return
	}
	deny(w, http.StatusNotFound, fmt.Errorf("there is no login of yours at %q", name))
}

// begin returns the login of a user to a server, which it begins if there is none.
func (p *route) begin(s schema.Server, principal string) *begun {
	all, key := &p.begun, [2]string{principal, s.Name}
	all.mu.Lock()
	defer all.mu.Unlock()
	if b := all.all[key]; b != nil {
		return b
	}
	b := &begun{shown: make(chan struct{}), over: make(chan struct{})}
	all.all[key] = b
	all.wait.Go(func() {
		ctx, cancel := context.WithTimeout(all.ctx, loginTime)
		defer cancel()
		b.err = p.logins.LogIn(ctx, s, principal, func(address string) {
			b.address = address
			close(b.shown)
		})
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.all, key)
		close(b.over)
	})
	return b
}

// takesLogin reports whether each user logs in to a server.
func takesLogin(s schema.Server) bool { return s.Credentials.User && s.Credentials.Exchange == nil }
