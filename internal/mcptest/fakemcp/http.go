package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
)

// web serves streamable HTTP, on any path: a session for each client that initializes, and one common
// peer for clients of the new protocol, which have no sessions.
type web struct {
	fake   *fake
	common *peer

	mu       sync.Mutex
	sessions map[string]*session
}

// A session is a client that initialized, with the messages for its GET stream.
type session struct {
	peer *peer
	box  *outbox
}

// exchange is an HTTP request, whose body has been read, and its response.
type exchange struct {
	web  *web
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	msg  message // the message in the body, if any
}

func serveHTTP(f *fake, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	w := &web{fake: f, common: newPeer(f, func([]byte) {}), sessions: map[string]*session{}}
	path := "/mcp"
	if f.cfg.sse {
		path = "/sse"
	}
	fmt.Fprintf(os.Stderr, "listening http://%s%s\n", l.Addr(), path)
	return http.Serve(l, w)
}

func (s *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{web: s, w: w, r: r}
	x.body, _ = io.ReadAll(r.Body) // after an error nobody reads the answer
	_ = json.Unmarshal(x.body, &x.msg)
	switch {
	case x.strike():
	case s.fake.cfg.bearer != "" && r.Header.Get("Authorization") != "Bearer "+s.fake.cfg.bearer:
		x.unauthorized()
	case s.fake.cfg.sse:
		s.serveSSE(x)
	case r.Method == http.MethodPost:
		s.post(x)
	case s.fake.cfg.era == "new" || r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "POST")
		x.refuse(http.StatusMethodNotAllowed, "method not allowed")
	default:
		s.withSession(x)
	}
}

// strike reports whether a fault has handled the HTTP request.
func (x *exchange) strike() bool {
	for _, a := range x.web.fake.faults {
		if a.http != nil && a.meets(x) && a.due(x.web.fake.ledger) && a.http(x, a.arg) {
			return true
		}
	}
	return false
}

// meets reports whether an HTTP fault applies to this request, by the method of the message or, for
// those on GET, of HTTP.
func (a *armed) meets(x *exchange) bool {
	switch a.on {
	case "*":
		return true
	case http.MethodGet:
		return x.r.Method == http.MethodGet
	case "":
		return x.msg.Method == "tools/call"
	}
	return x.msg.Method == a.on
}

func (x *exchange) unauthorized() {
	x.w.Header().Set("WWW-Authenticate",
		fmt.Sprintf(`Bearer error="invalid_token", resource_metadata="http://%s/.well-known/oauth-protected-resource"`, x.r.Host))
	x.refuse(http.StatusUnauthorized, "unauthorized")
}

// refuse answers with a status and a JSON-RPC error without a request id.
func (x *exchange) refuse(status int, text string) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	_, _ = x.w.Write(errorAnswer(json.RawMessage("null"), failure(-32000, "%s", text)))
}

// post receives a message: of the new protocol, the first of a session, or a later one.
func (s *web) post(x *exchange) {
	switch {
	case x.r.Header.Get("Mcp-Protocol-Version") >= newVersion || x.msg.meta().Version >= newVersion:
		s.modernPost(x)
	case x.msg.Method == "initialize":
		s.open(x)
	case s.fake.sessionless:
		s.common.setReady(nil) // nobody can tell whether it initialized
		x.take(s.common)
	default:
		s.withSession(x)
	}
}

func (s *web) open(x *exchange) {
	box := newOutbox()
	p := newPeer(s.fake, box.put)
	if s.fake.sessionless {
		p = s.common
	} else {
		id := "sess-" + rand.Text()
		s.mu.Lock()
		s.sessions[id] = &session{p, box}
		s.mu.Unlock()
		x.w.Header().Set("Mcp-Session-Id", id)
	}
	x.take(p)
}

// withSession serves a request of a session. It answers 400 without a session id, and 404 for an
// unknown one.
func (s *web) withSession(x *exchange) {
	id := x.r.Header.Get("Mcp-Session-Id")
	known := s.session(id)
	switch {
	case id == "":
		x.refuse(http.StatusBadRequest, "Bad Request: no session id")
	case known == nil:
		x.refuse(http.StatusNotFound, "Session not found")
	case x.r.Method == http.MethodPost:
		x.take(known.peer)
	case x.r.Method == http.MethodGet:
		s.fake.ledger.add("get")
		known.box.serve(x)
	default:
		s.fake.ledger.add("delete")
		s.forget(id)
	}
}

// session returns the session with an id, nil if there is none.
func (s *web) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

func (s *web) forget(id string) {
	s.mu.Lock()
	known := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if known != nil {
		known.peer.cancelAll()
		known.box.close()
	}
}

// take passes a message to its peer. A message without an answer gets 202.
func (x *exchange) take(p *peer) {
	out := &reply{w: x.w, plain: x.web.fake.cfg.json, modern: x.msg.meta().Version >= newVersion}
	defer out.close()
	c := p.receive(x.body, out.send)
	if c == nil {
		out.accepted()
		return
	}
	c.header = x.r.Header
	if c.modern() {
		stop := cancelWith(x.r, c)
		defer stop()
	}
	c.serve()
}

// cancelWith cancels the call when the client closes the request, as HTTP clients of the new
// protocol do.
func cancelWith(r *http.Request, c *call) (stop func() bool) {
	return context.AfterFunc(r.Context(), func() {
		c.peer.fake.ledger.add("cancelled %s", c.ID)
		c.cancel()
	})
}

// modernPost checks the headers that must agree with the body in the new protocol.
func (s *web) modernPost(x *exchange) {
	var params struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		Task string `json:"taskId"`
	}
	_ = json.Unmarshal(x.msg.Params, &params)
	h := x.r.Header
	named := slices.Contains([]string{"tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel"}, x.msg.Method)
	switch {
	case s.fake.cfg.era == "old":
		x.refuse(http.StatusBadRequest, "Bad Request: Unsupported protocol version (supported versions: 2025-11-25)")
	case x.msg.ID != nil && h.Get("Mcp-Protocol-Version") != x.msg.meta().Version:
		x.mismatch("Mcp-Protocol-Version")
	case h.Get("Mcp-Method") != x.msg.Method:
		x.mismatch("Mcp-Method")
	case named && decodeHeader(h.Get("Mcp-Name")) != params.Name+params.URI+params.Task:
		x.mismatch("Mcp-Name")
	default:
		x.take(s.common)
	}
}

func (x *exchange) mismatch(header string) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusBadRequest)
	id := x.msg.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	_, _ = x.w.Write(errorAnswer(id, failure(-32020, "header %s does not match the body", header)))
}
