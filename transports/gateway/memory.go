package gateway

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
)

// accountOf returns the account that the resources of a request are charged to: its user, or
// its address if no identity provider identifies users.
func accountOf(r *http.Request, principal string) string {
	if principal != anybody && principal != bearer {
		return principal
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip, err := netip.ParseAddr(host)
	if err == nil && !ip.Unmap().Is4() {
		network, _ := ip.Prefix(64) // one machine may have all of these addresses
		return network.String()
	}
	return host
}

// errNoRoom means that a body would exceed the memory budget.
var errNoRoom = errors.New("this user or address uses too much memory: gateway.max_held_bytes")

// serve serves a request of a principal. The memory of its body is charged until serve
// returns, or for as long as a stream needs the body.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, principal string) {
	if r.Body != http.NoBody {
		// The deadline is also for a body that is not read: net/http waits for the end of it
		// before the next request. Not every ResponseWriter supports deadlines.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.bodyTimeout))
		size := r.ContentLength
		body := &countedBody{ReadCloser: r.Body, reserved: g.memory.Open(accountOf(r, principal), nil), counts: size < 0}
		defer func() { body.reserved.Set(0) }()
		if !body.counts && !body.reserved.Reserve(min(size, int64(g.opts.MaxRequestBytes))) {
			denyAndClose(w, r, g.access.linger, overload(nil, errNoRoom.Error()))
			return
		}
		r.Body = body
	}
	g.route(w, r, principal)
}

// A countedBody is the body of a request with a memory reservation.
type countedBody struct {
	io.ReadCloser
	reserved *membudget.Reservation
	counts   bool // the size is unknown: each read adds to the reservation
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.counts && !b.reserved.Reserve(int64(n)) {
		return n, errNoRoom // the n bytes may contain the id of the request
	}
	return n, err
}

// accountForBody moves the reservation for the body of r to the stream, until the stream has
// the answer: the call continues even if its host loses the connection.
func (st *stream) accountForBody(r *http.Request) {
	if body, ok := r.Body.(*countedBody); ok {
		st.body, body.reserved = body.reserved, nil
	}
}
