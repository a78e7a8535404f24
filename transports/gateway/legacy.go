package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// wantsLegacy reports whether a GET asks for HTTP+SSE. MCP 2024-11-05 requires no header.
// Some hosts send the media type in Content-Type, and supergateway sends Accept: */*.
func wantsLegacy(r *http.Request) bool {
	if r.Header.Get("Accept") == "*/*" {
		return true
	}
	for _, name := range []string{"Accept", "Content-Type"} {
		if strings.Contains(strings.ToLower(strings.Join(r.Header.Values(name), ",")), "text/event-stream") {
			return true
		}
	}
	return false
}

// legacy serves the stream of HTTP+SSE (MCP 2024-11-05, "Transports"), with a heartbeat event.
func (g *Gateway) legacy(w http.ResponseWriter, r *http.Request, principal, namespace string) {
	s := g.openSession(r, principal, namespace, true)
	if s == nil {
		deny(w, overload(nil, "there are too many sessions"))
		return
	}
	defer g.sessions.endSession(s)
	defer s.done()
	r, leave, ok := g.takePlace(w, r, nil, principal, namespace, s.host.Waiting)
	if !ok {
		return
	}
	defer leave()
	s.read(1)
	defer s.read(-1)
	carrier, before, _ := s.standalone.carry(0)
	response := eventStream(w)
	response.pings = func() string {
		return "event: ping\ndata: {\"time\":\"" + time.Now().UTC().Format(time.RFC3339) + "\"}\n\n"
	}
	if response.writeNow("event: endpoint\ndata: /mcp/"+namespace+"/message?sessionId="+s.id+"\n\n"+response.pings()) != nil {
		return
	}
	response.serve(r.Context(), s.standalone, carrier, before, s.over)
}

// message handles a message of HTTP+SSE, whose answer is sent on its stream, or a message
// without a session.
func (g *Gateway) message(w http.ResponseWriter, r *http.Request, principal, namespace string) {
	m, ok := g.read(w, r)
	if !ok {
		return
	}
	defer g.answerPanic(w, m.ID)
	if to := g.forwarder.callReplica(r, principal, m); to != nil && g.forwarder.passMessage(w, r, to, m) {
		return
	}
	if !r.URL.Query().Has("sessionId") {
		g.messageWithoutSession(w, r, principal, namespace, m)
		return
	}
	s := g.sessionOf(r.URL.Query().Get("sessionId"), principal, namespace)
	if s != nil {
		defer s.done()
	}
	if s == nil || s.standalone.ids {
		deny(w, denial{status: http.StatusNotFound, text: "no such session", id: m.ID})
		return
	}
	s.receive(m, nil)
	w.WriteHeader(http.StatusAccepted)
}

// messageWithoutSession answers a request without a session in its response. It opens a session
// for this request only.
func (g *Gateway) messageWithoutSession(w http.ResponseWriter, r *http.Request, principal, namespace string, m wire.Message) {
	switch {
	case m.Raw[0] == '[':
		deny(w, denial{status: http.StatusBadRequest, text: "a batch needs a session"})
		return
	case !m.IsRequest():
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !g.begin() {
		shuttingDown(w, m.ID)
		return
	}
	defer g.running.add(-1)
	e, done := g.openExchange(r, principal, true, func(e Edge) (*host.Session, func(context.Context)) {
		return g.opts.Open(e, principal, namespace, false)
	})
	defer done()
	metaVersion, _ := wire.Text(wire.Get(m.Params, "_meta", transports.MetaVersion))
	switch {
	case metaVersion >= transports.StatelessVersion:
	case m.Method == "initialize":
		m.Params = completeHandshake(m.Params)
	default:
		hello, ok := g.handshake(r, e)
		if !ok {
			return
		}
		if failure := wire.Get(hello, "error"); failure != nil {
			writeJSON(w, http.StatusAccepted, bytes.Join(wire.Failure(m.ID, wire.ParseError(failure)), nil))
			return
		}
	}
	e.host.Receive(m, e.standalone)
	g.respond(w, r, e.standalone, reply{forms: forms{text: true}, status: http.StatusAccepted})
}

// handshake makes the handshake for the host and returns the answer; false if the host is gone.
func (g *Gateway) handshake(r *http.Request, e *exchange) (answer []byte, ok bool) {
	st := newStream(g.opts.MaxResponseBytes)
	st.answerOnly = true
	e.host.Receive(parsed(fmt.Sprintf(`{"jsonrpc":"2.0","id":"dynmcp","method":"initialize","params":%s}`, completeHandshake(nil))), st)
	if answer, ok = st.await(r.Context()); ok {
		e.host.Receive(parsed(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil)
	}
	return answer, ok
}

// completeHandshake adds the required members that the params of initialize lack.
func completeHandshake(params []byte) []byte {
	if !wire.IsObject(params) {
		params = []byte(`{}`)
	}
	for _, member := range [][2]string{{"protocolVersion", `"2025-03-26"`}, {"capabilities", `{}`}, {"clientInfo", `{"name":"http","version":"1"}`}} {
		if wire.Get(params, member[0]) == nil {
			params = wire.Set(params, member[0], []byte(member[1]))
		}
	}
	return params
}
