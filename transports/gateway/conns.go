package gateway

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// conns are the connections of hosts. When there are too many, the first to be closed are
// those without an authenticated request, then those of the account with the most. Without
// a token in the config, any request that passes the checks counts as authenticated.
type conns struct {
	most     int // limit
	reserved int // of these, for unauthenticated connections, so that new hosts are heard

	mu              sync.Mutex
	unauthenticated list.List             // connections (*conn) without an account, the longest unchanged first
	of              map[string]*list.List // the others, by account, in the same order
	authenticated   int                   // number of connections in of
}

func newConns(most int) *conns {
	most = max(most, 2)
	return &conns{most: most, reserved: max(most/8, 1), of: map[string]*list.List{}}
}

// A conn is a connection of a host.
type conn struct {
	net.Conn
	in *conns

	// Guarded by in.mu.
	at      *list.Element // nil after Close
	account string        // its account; "" if unauthenticated
	idle    bool          // between two requests
}

// add adds a connection, and closes unauthenticated ones to make room for it.
func (t *conns) add(nc net.Conn) *conn {
	c := &conn{Conn: nc, in: t}
	var gone []*conn
	t.mu.Lock()
	for t.unauthenticated.Len()+t.authenticated >= t.most { // some are unauthenticated: the others are at most most-reserved
		old := t.unauthenticated.Front().Value.(*conn)
		t.removeLocked(old)
		gone = append(gone, old)
	}
	c.at = t.unauthenticated.PushBack(c)
	t.mu.Unlock()
	for _, old := range gone {
		old.Conn.Close()
	}
	return c
}

func (t *conns) removeLocked(c *conn) {
	switch of := t.of[c.account]; {
	case c.at == nil:
		return
	case of == nil:
		t.unauthenticated.Remove(c.at)
	default:
		of.Remove(c.at)
		t.authenticated--
		if of.Len() == 0 {
			delete(t.of, c.account)
		}
	}
	c.at = nil
}

func (t *conns) moveLocked(c *conn, account string) {
	t.removeLocked(c)
	c.account = account
	of := t.of[account]
	if of == nil {
		of = list.New()
		t.of[account] = of
	}
	c.at = of.PushBack(c)
	t.authenticated++
}

// authenticate assigns a connection to an account, or returns false if that has too many.
func (c *conn) authenticate(account string) bool {
	t := c.in
	t.mu.Lock()
	if c.at == nil || c.account == account {
		t.mu.Unlock()
		return true
	}
	var gone *conn
	if c.account == "" && t.authenticated >= t.most-t.reserved {
		if gone = t.connToCloseLocked(account); gone == nil {
			t.mu.Unlock()
			return false
		}
		t.removeLocked(gone)
	}
	t.moveLocked(c, account)
	t.mu.Unlock()
	if gone != nil {
		gone.Conn.Close()
	}
	return true
}

// connToCloseLocked returns the connection to close for a new one of an account: of the account
// with the most, the connection that is idle for the longest time. If none is idle it returns
// the longest busy one of another account, or nil.
func (t *conns) connToCloseLocked(account string) *conn {
	var fullest string
	for of, l := range t.of {
		if t.of[fullest] == nil || l.Len() > t.of[fullest].Len() {
			fullest = of
		}
	}
	own := t.of[account]
	if own != nil && own.Len()+1 >= t.of[fullest].Len() {
		fullest = account
	}
	of := t.of[fullest]
	for e := of.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); c.idle {
			return c
		}
	}
	if fullest == account {
		return nil
	}
	return of.Front().Value.(*conn)
}

// changed is the ConnState of the http.Server.
func changed(nc net.Conn, state http.ConnState) {
	c := connOf(nc)
	if c == nil || state != http.StateActive && state != http.StateIdle {
		return
	}
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.at == nil {
		return
	}
	c.idle = state == http.StateIdle
	if of := c.in.of[c.account]; of != nil {
		of.MoveToBack(c.at)
	} else {
		c.in.unauthenticated.MoveToBack(c.at)
	}
}

func (c *conn) Close() error {
	c.in.mu.Lock()
	c.in.removeLocked(c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// connOf returns the conn of a connection that our listener has accepted, or nil.
func connOf(nc net.Conn) *conn {
	if over, ok := nc.(*tls.Conn); ok {
		nc = over.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(nc))
}

// connFrom returns the connection of a request, nil if it is not from our listener.
func connFrom(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
