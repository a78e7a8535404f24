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

// accountOf returns the name under which what a request uses is accounted: its user, or
// its address where no identity provider tells users apart.
func accountOf(r *http.Request, who string) string {
	if who != anybody && who != bearer {
		return who
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip, err := netip.ParseAddr(host)
	if err == nil && !ip.Unmap().Is4() {
		network, _ := ip.Prefix(64) // one machine has all of these addresses
		return network.String()
	}
	return host
}

// errNoRoom is for a body that would be more than may be held.
var errNoRoom = errors.New("too much is held for this user or address already: gateway.max_held_bytes")

// serve serves a request of a principal, with its body accounted for until the end, or as
// long as a stream keeps it.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, who string) {
	if r.Body != http.NoBody {
		// Also one that nobody reads: net/http waits for its end before the next request.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.body)) // what cannot have one is not slow
		size := r.ContentLength
		body := &countedBody{ReadCloser: r.Body, reserved: g.memory.Open(accountOf(r, who), nil), counts: size < 0}
		defer func() { body.reserved.Set(0) }()
		if !body.counts && !body.reserved.Reserve(min(size, int64(g.opts.MaxRequestBytes))) {
			refuse(w, r, g.access.linger, overload(nil, errNoRoom.Error()))
			return
		}
		r.Body = body
	}
	g.route(w, r, who)
}

// A countedBody is the body of a request that is accounted for: one of unknown size as it
// comes.
type countedBody struct {
	io.ReadCloser
	reserved *membudget.Reservation
	counts   bool
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.counts && !b.reserved.Reserve(int64(n)) {
		return n, errNoRoom // its id may be in what came
	}
	return n, err
}

// accountForBody has the stream account for the body of the request that it answers until it
// has: the call goes on where its host has lost the connection.
func (st *stream) accountForBody(r *http.Request) {
	if body, ok := r.Body.(*countedBody); ok {
		st.body, body.reserved = body.reserved, nil
	}
}
