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

// A denial is the error response to a request that is not served. docs/gateway.md lists all.
type denial struct {
	status  int
	code    int64 // JSON-RPC error code; 0 means wire.CodeInvalidRequest
	text    string
	id      []byte             // of the request, nil if unknown
	outcome transports.Outcome // "" means transports.NotSent
}

// error returns the JSON-RPC error. For an overload it sets Retry-After in the header.
func (d denial) error(h http.Header) *wire.Error {
	if d.code == transports.CodeOverloaded {
		h.Set("Retry-After", "5")
	}
	return transports.OutcomeError(cmp.Or(d.code, wire.CodeInvalidRequest), d.text, cmp.Or(d.outcome, transports.NotSent))
}

// deny answers a request with a JSON-RPC error.
func deny(w http.ResponseWriter, d denial) {
	writeJSON(w, d.status, bytes.Join(wire.Failure(d.id, d.error(w.Header())), nil))
}

// excerptBytes is how much of the beginning and the end of a body wire.Fault looks at.
const excerptBytes = 4 << 10

// askedBy returns the id of the request in a body, of which head and tail are the beginning
// and the end. It returns nil if the body is not a request.
func askedBy(head, tail []byte) []byte {
	fault := wire.NewFault(head, nil)
	fault.End = tail[max(0, len(tail)-excerptBytes):]
	if id := fault.Asks(); wire.ValidID(id) {
		return id
	}
	return nil
}

// unknown returns the denial for an unknown namespace.
func (g *Gateway) unknown(namespace string) denial {
	return denial{status: http.StatusNotFound, text: g.opts.Unknown(namespace)}
}

// denyAndClose denies a request without reading its body, and has its connection closed.
func denyAndClose(w http.ResponseWriter, r *http.Request, linger time.Duration, d denial) {
	hangUp(w, r, linger)
	deny(w, d)
}

// hangUp closes the connection after the response if the request has a body. The rest of
// the body is discarded for linger, or the host could lose the answer to a reset.
func hangUp(w http.ResponseWriter, r *http.Request, linger time.Duration) {
	if r.Body != http.NoBody {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(linger))
	}
}

func overload(id []byte, text string) denial {
	return denial{status: http.StatusServiceUnavailable, code: transports.CodeOverloaded, text: text, id: id}
}

const noSuchSession = "no such session: send initialize again"

const wantsEvents = "the response is text/event-stream: Accept must allow it"

// noSession denies a request that names no session or an unknown one.
func noSession(w http.ResponseWriter, r *http.Request, id []byte) {
	if r.Header.Get("Mcp-Session-Id") == "" {
		deny(w, denial{status: http.StatusBadRequest, text: "the header Mcp-Session-Id is missing: the answer to initialize has it", id: id})
		return
	}
	deny(w, denial{status: http.StatusNotFound, text: noSuchSession, id: id})
}

// shuttingDown denies a request that arrives during the shutdown.
func shuttingDown(w http.ResponseWriter, id []byte) {
	w.Header().Set("Connection", "close")
	deny(w, denial{status: http.StatusServiceUnavailable, code: transports.CodeShuttingDown, text: "dynmcp is shutting down", id: id})
}

// writeJSON answers a request. It reports whether the host left the answer unread for too long.
func writeJSON(w http.ResponseWriter, status int, body []byte) (slow bool) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // otherwise a large body is chunked
	w.WriteHeader(status)
	_, err := w.Write(body)
	return errors.Is(err, os.ErrDeadlineExceeded) // after other errors the host may be gone
}
