package gateway

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A denial is the answer to a request that is not served. docs/gateway.md lists them.
type denial struct {
	status  int
	code    int64 // of JSON-RPC, 0 is wire.CodeInvalidRequest
	text    string
	id      []byte             // of the request that it answers, nil where that is not known
	outcome transports.Outcome // "" is transports.NotSent
}

// error returns the error of JSON-RPC, and says in the header when to come back.
func (d denial) error(h http.Header) *wire.Error {
	if d.code == transports.CodeOverloaded {
		h.Set("Retry-After", "5")
	}
	return transports.OutcomeError(cmp.Or(d.code, wire.CodeInvalidRequest), d.text, cmp.Or(d.outcome, transports.NotSent))
}

// deny answers a request with an error, as JSON-RPC has them.
func deny(w http.ResponseWriter, d denial) {
	writeJSON(w, d.status, bytes.Join(wire.Failure(d.id, d.error(w.Header())), nil))
}

// excerptBytes is how much of either end is kept: what wire.Fault looks at.
const excerptBytes = 4 << 10

// askedBy returns the id of the request that a body with these ends is, nil otherwise.
func askedBy(head, tail []byte) []byte {
	fault := wire.NewFault(head, nil)
	fault.End = tail[max(0, len(tail)-excerptBytes):]
	if id := fault.Asks(); wire.ValidID(id) {
		return id
	}
	return nil
}

// unknown is the denial of a namespace that there is not.
func (g *Gateway) unknown(namespace string) denial {
	return denial{status: http.StatusNotFound, text: g.opts.Unknown(namespace)}
}

// refuse is deny for a request whose body is not read, after which its connection is
// closed.
func refuse(w http.ResponseWriter, r *http.Request, linger time.Duration, d denial) {
	hangUp(w, r, linger)
	deny(w, d)
}

// hangUp has the connection closed after the answer where the request has a body.
func hangUp(w http.ResponseWriter, r *http.Request, linger time.Duration) {
	if r.Body != http.NoBody {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(linger))
	}
}

func overload(id []byte, text string) denial {
	return denial{status: http.StatusServiceUnavailable, code: transports.CodeOverloaded, text: text, id: id}
}

const noSuchSession = "there is no such session, or no longer: send initialize again"

// noSession answers a request that is about no session there is.
func noSession(w http.ResponseWriter, r *http.Request, id []byte) {
	if r.Header.Get("Mcp-Session-Id") == "" {
		deny(w, denial{status: http.StatusBadRequest, text: "an Mcp-Session-Id is wanted, which the answer to initialize has", id: id})
		return
	}
	deny(w, denial{status: http.StatusNotFound, text: noSuchSession, id: id})
}

// shuttingDown refuses a request that comes when we end.
func shuttingDown(w http.ResponseWriter, id []byte) {
	w.Header().Set("Connection", "close")
	deny(w, denial{status: http.StatusServiceUnavailable, code: transports.CodeShuttingDown, text: "dynmcp is shutting down", id: id})
}

// writeJSON answers a request. slow is that the host left the answer unread for too long.
func writeJSON(w http.ResponseWriter, status int, body []byte) (slow bool) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // else what is large is chunked
	w.WriteHeader(status)
	_, err := w.Write(body)
	return errors.Is(err, os.ErrDeadlineExceeded) // else the host may be gone
}
