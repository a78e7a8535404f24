package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// httpFaults apply to POSTs of tools/call, or of the method of -fault-on; those on * to every
// request, those on GET to the stream of a session. The call is executed only where doc says "run".
var httpFaults = []fault{
	{name: "h401", doc: "every request: 401 with WWW-Authenticate", on: "*", http: func(x *exchange, _ string) bool { x.unauthorized(); return true }},
	{name: "h403", doc: "403 insufficient_scope, scope ARG (files:write)", http: forbidden},
	{name: "h404", doc: "forget the session and answer 404", http: lostSession},
	{name: "h404-once", doc: "like h404, the first time only", once: true, http: lostSession},
	{name: "h429", doc: "429 with Retry-After ARG (1)", http: retryAfter(http.StatusTooManyRequests)},
	{name: "h503", doc: "503 with Retry-After ARG (1)", http: retryAfter(http.StatusServiceUnavailable)},
	{name: "h500", doc: "500 with a text", http: func(x *exchange, _ string) bool { return status(x, "500") }},
	{name: "h500-after", doc: "run the call, then 500", http: runThen(func(x *exchange, _ []byte) { status(x, "500") })},
	{name: "status", doc: "status ARG with a text", http: status},
	{name: "truncate-sse", doc: "run the call, send half of its event, break the connection", http: runThen(truncate)},
	{name: "end-sse", doc: "run the call, end the stream properly without its answer", http: runThen(func(x *exchange, _ []byte) { startEvents(x.w) })},
	{name: "stall-sse", doc: "open the stream and send nothing more", http: stall},
	{name: "odd-events", doc: "run the call, put events of other kinds around its answer", http: runThen(oddEvents)},
	{name: "html", doc: "200 with a login page", http: body("text/html; charset=utf-8", "<!DOCTYPE html><title>Log in</title><p>Please log in.")},
	{name: "bad-json", doc: "200 with JSON that is cut off", http: body("application/json", `{"jsonrpc":"2.0","id":`)},
	{name: "empty-200", doc: "200 with an empty body", http: body("application/json", "")},
	{name: "h204", doc: "204", http: func(x *exchange, _ string) bool { x.w.WriteHeader(http.StatusNoContent); return true }},
	{name: "h202", doc: "202 to a request", http: func(x *exchange, _ string) bool { x.w.WriteHeader(http.StatusAccepted); return true }},
	{name: "redirect", doc: "every request: 307 to the URL ARG", on: "*", http: redirect(http.StatusTemporaryRedirect)},
	{name: "redirect-302", doc: "every request: 302 to the URL ARG", on: "*", http: redirect(http.StatusFound)},
	{name: "slow-header", doc: "wait ARG milliseconds (for ever) before the header", http: slowHeader},
	{name: "slow-body", doc: "run the call, send its answer a byte every ARG (100) milliseconds", http: slowBody},
	{name: "huge-body", doc: "a JSON answer with a text of ARG (300 MiB) bytes", http: hugeBody},
	{name: "huge-event", doc: "an event with a text of ARG (300 MiB) bytes", http: hugeEvent},
	{name: "gzip-bomb", doc: "a JSON answer with a text of ARG (300 MiB) bytes, compressed", http: gzipBomb},
	{name: "wrong-id", doc: "run the call, answer under another id", http: runThen(wrongID)},
	{name: "rst", doc: "reset the connection", http: func(x *exchange, _ string) bool { reset(x, nil); return true }},
	{name: "rst-after", doc: "run the call, then reset the connection", http: runThen(reset)},
	{name: "no-session", doc: "give no session id and ask for none", start: func(f *fake, _ string) { f.sessionless = true }},
	{name: "get-status", doc: "status ARG (405) for the GET stream", on: http.MethodGet, http: func(x *exchange, arg string) bool { return status(x, fmt.Sprint(number(arg, 405))) }},
	{name: "get-html", doc: "a login page for the GET stream", on: http.MethodGet, http: body("text/html", "<!DOCTYPE html><title>Log in</title>")},
	{name: "get-ends", doc: "the GET stream ends at once", on: http.MethodGet, http: func(x *exchange, _ string) bool { startEvents(x.w); return true }},
}

// runThen returns a fault that runs the call and then f with its answer.
func runThen(f func(x *exchange, msg []byte)) func(*exchange, string) bool {
	return func(x *exchange, _ string) bool { f(x, x.run()); return true }
}

// run executes the call without a fault and returns its answer.
func (x *exchange) run() []byte {
	p := x.web.common
	if known := x.web.session(x.r.Header.Get("Mcp-Session-Id")); known != nil {
		p = known.peer
	}
	var last []byte
	if c := p.receive(x.body, func(msg []byte) { last = msg }); c != nil {
		c.header = x.r.Header
		c.serve()
	}
	return last
}

func forbidden(x *exchange, scope string) bool {
	if scope == "" {
		scope = "files:write"
	}
	x.w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, scope))
	x.refuse(http.StatusForbidden, "insufficient scope")
	return true
}

func lostSession(x *exchange, _ string) bool {
	x.web.forget(x.r.Header.Get("Mcp-Session-Id"))
	return false // the request is then answered as for any unknown session
}

func retryAfter(code int) func(*exchange, string) bool {
	return func(x *exchange, arg string) bool {
		x.w.Header().Set("Retry-After", fmt.Sprint(number(arg, 1)))
		x.refuse(code, "slow down")
		return true
	}
}

func status(x *exchange, arg string) bool {
	http.Error(x.w, "the upstream is broken <&>", number(arg, 500))
	return true
}

func body(contentType, text string) func(*exchange, string) bool {
	return func(x *exchange, _ string) bool {
		x.w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(x.w, text)
		return true
	}
}

func redirect(code int) func(*exchange, string) bool {
	return func(x *exchange, url string) bool {
		http.Redirect(x.w, x.r, url, code)
		return true
	}
}

func truncate(x *exchange, msg []byte) {
	startEvents(x.w)
	_, _ = x.w.Write(append([]byte("data: "), msg[:len(msg)/2]...))
	flush(x.w)
	panic(http.ErrAbortHandler)
}

func stall(x *exchange, _ string) bool {
	startEvents(x.w)
	<-x.r.Context().Done()
	return true
}

func oddEvents(x *exchange, msg []byte) {
	startEvents(x.w)
	_, _ = io.WriteString(x.w, "event: ping\ndata: not json\n\nretry: 10\nid\n\ndata\n\n:\n\nunknown: field\n\n")
	_, _ = fmt.Fprintf(x.w, "id: 7\r\ndata:%s\r\n\r\n", msg)
	_, _ = io.WriteString(x.w, "event: bye\ndata: {}\n\n")
}

func slowHeader(x *exchange, ms string) bool {
	var after <-chan time.Time
	if ms != "" {
		after = time.After(time.Duration(number(ms, 0)) * time.Millisecond)
	}
	select {
	case <-after:
		return false
	case <-x.r.Context().Done():
		return true
	}
}

func slowBody(x *exchange, ms string) bool {
	x.w.Header().Set("Content-Type", "application/json")
	tick := time.NewTicker(time.Duration(number(ms, 100)) * time.Millisecond)
	defer tick.Stop()
	for _, b := range x.run() {
		_, _ = x.w.Write([]byte{b})
		flush(x.w)
		select {
		case <-tick.C:
		case <-x.r.Context().Done():
			return true
		}
	}
	return true
}

// writeHuge streams an answer with a text of n bytes, without holding it in memory.
func writeHuge(w io.Writer, id json.RawMessage, n int) {
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for ; n > 0; n -= len(chunk) {
		if _, err := w.Write(chunk[:min(n, len(chunk))]); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `"}]}}`)
}

func hugeBody(x *exchange, arg string) bool {
	x.w.Header().Set("Content-Type", "application/json")
	writeHuge(x.w, x.msg.ID, number(arg, 300<<20))
	return true
}

func hugeEvent(x *exchange, arg string) bool {
	startEvents(x.w)
	_, _ = io.WriteString(x.w, "data: ")
	writeHuge(x.w, x.msg.ID, number(arg, 300<<20))
	_, _ = io.WriteString(x.w, "\n\n")
	return true
}

func gzipBomb(x *exchange, arg string) bool {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(x.w)
	writeHuge(z, x.msg.ID, number(arg, 300<<20))
	_ = z.Close()
	return true
}

func wrongID(x *exchange, msg []byte) {
	x.w.Header().Set("Content-Type", "application/json")
	own := fmt.Sprintf(`"id":%s}`, x.msg.ID)
	_, _ = io.WriteString(x.w, strings.TrimSuffix(string(msg), own)+`"id":987654321}`)
}

// reset closes the connection without lingering, which the client sees as a reset.
func reset(x *exchange, _ []byte) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
