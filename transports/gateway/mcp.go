package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// streamAfter is how long an answer may take before its event stream begins.
const streamAfter = time.Second

// resumableVersion is the first protocol version in which a stream begins with an event
// without data (MCP 2025-11-25, "Transports").
const resumableVersion = "2025-11-25"

// serveMCP handles streamable HTTP (MCP, "Transports").
func (g *Gateway) serveMCP(w http.ResponseWriter, r *http.Request, principal, namespace string) {
	if r.Method != http.MethodPost && r.Header.Get("MCP-Protocol-Version") >= transports.StatelessVersion {
		w.Header().Set("Allow", "POST, OPTIONS")
		deny(w, denial{status: http.StatusMethodNotAllowed, text: "from " + transports.StatelessVersion + " on only POST is allowed"})
		return
	}
	switch r.Method {
	case http.MethodPost:
		g.post(w, r, principal, namespace)
	case http.MethodGet:
		g.get(w, r, principal, namespace)
	case http.MethodDelete:
		s := g.sessionOf(r.Header.Get("Mcp-Session-Id"), principal, namespace)
		if s == nil {
			noSession(w, r, nil)
			return
		}
		s.done()
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(host.ErrEndedByHost)
		g.sessions.endUnused(ctx, s, time.Time{})
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		deny(w, denial{status: http.StatusMethodNotAllowed, text: "the method " + r.Method + " is not allowed here"})
	}
}

// post handles a message of a host.
func (g *Gateway) post(w http.ResponseWriter, r *http.Request, principal, namespace string) {
	accept := acceptable(r)
	if !accept.text && !accept.events {
		g.readAndDeny(w, r, denial{status: http.StatusNotAcceptable, text: "answers are application/json or text/event-stream: Accept must allow one of them"})
		return
	}
	m, ok := g.read(w, r)
	if !ok {
		return
	}
	defer g.answerPanic(w, m.ID)
	version := r.Header.Get("MCP-Protocol-Version")
	metaVersion, _ := wire.Text(m.Outline.Get(m.Params, "_meta", transports.MetaVersion))
	switch {
	case version >= transports.StatelessVersion || metaVersion >= transports.StatelessVersion:
		if to := g.forwarder.callReplica(r, principal, m); to == nil || !g.forwarder.passMessage(w, r, to, m) {
			g.postStateless(w, r, principal, namespace, m)
		}
		return
	case version != "" && !slices.Contains(mcp.SupportedProtocolVersions(), version):
		deny(w, denial{status: http.StatusBadRequest, text: fmt.Sprintf("unsupported protocol version %q", version), id: m.ID})
		return
	}
	asks := !m.IsNotification() && (m.Method != "" || m.Raw[0] != '{')
	begins := m.Method == "initialize" && m.ID != nil
	var s *session
	if id := r.Header.Get("Mcp-Session-Id"); !begins || id != "" {
		if s = g.sessionOf(id, principal, namespace); s == nil {
			noSession(w, r, m.ID)
			return
		}
		defer s.done()
		if begins {
			deny(w, denial{status: http.StatusConflict, text: "the session is already initialized", id: m.ID})
			return
		}
	}
	if !asks {
		s.receive(m, nil)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !g.begin() {
		shuttingDown(w, m.ID)
		return
	}
	defer g.running.add(-1)
	if begins {
		if s = g.openSession(r, principal, namespace, false); s == nil {
			deny(w, overload(m.ID, "there are too many sessions"))
			return
		}
		defer s.done()
		w.Header().Set("Mcp-Session-Id", s.id)
		version, _ = wire.Text(m.Outline.Get(m.Params, "protocolVersion"))
	}
	st := s.stream(g.opts.MaxResponseBytes)
	defer st.readBy(connFrom(r.Context()))()
	st.answerOnly = !accept.events
	st.accountForBody(r)
	s.receive(m, st)
	answer, ended := g.respond(w, r, st, reply{forms: accept, primed: version >= resumableVersion, over: s.over, slow: s.slow})
	if ended != onStream {
		s.forget(st)
	}
	if begins && (ended == hostGone || wire.Get(answer, "error") != nil) {
		g.sessions.endSession(s)
	}
}

// begin counts a request in progress. It returns false during the shutdown.
func (g *Gateway) begin() bool {
	g.running.add(1)
	select {
	case <-g.ending:
		g.running.add(-1)
		return false
	default:
		return true
	}
}

// maxDrained limits the bytes of a request that are read and dropped because it is too large.
const maxDrained = 64 << 20

// readBody reads the body of a request, up to the limit. If the body is complete, readBody
// also clears the read deadline that serve has set.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	const preallocated = 64 << 10 // memory allocated for a Content-Length before any byte has come
	most := int64(g.opts.MaxRequestBytes)
	in := http.MaxBytesReader(w, r.Body, most)
	var body []byte
	var err error
	if size := r.ContentLength; size < 0 || size > most {
		body, err = io.ReadAll(in)
	} else {
		body = make([]byte, min(size, preallocated))
		if _, err = io.ReadFull(in, body); err == nil && size > preallocated {
			body = append(make([]byte, 0, size), body...)[:size]
			_, err = io.ReadFull(in, body[preallocated:])
		}
	}
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig && r.ContentLength < maxDrained { // a host that is still sending reads no answer
		rest := io.Reader(r.Body)
		if counted, ok := rest.(*countedBody); ok {
			rest = counted.ReadCloser
		}
		_, _ = io.CopyN(io.Discard, rest, maxDrained)
	}
	return body, err
}

// unreadable returns the denial of a request whose body readBody could not read.
func (g *Gateway) unreadable(w http.ResponseWriter, r *http.Request, err error) denial {
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return denial{status: http.StatusRequestEntityTooLarge, code: transports.CodeTooLarge, text: fmt.Sprintf("the request is larger than %d bytes: gateway.max_request_bytes", tooBig.Limit)}
	}
	if errors.Is(err, errNoRoom) {
		hangUp(w, r, g.access.linger)
		return overload(nil, err.Error())
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return denial{status: http.StatusRequestTimeout, text: "the body of the request is incomplete"}
	}
	return denial{status: http.StatusBadRequest, text: "the body of the request cannot be read: " + err.Error()}
}

// read reads the message of a request, and denies an invalid request itself.
func (g *Gateway) read(w http.ResponseWriter, r *http.Request) (m wire.Message, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		g.readAndDeny(w, r, denial{status: http.StatusUnsupportedMediaType, text: "the Content-Type of a message must be application/json"})
		return m, false
	}
	body, err := g.readBody(w, r)
	if err != nil {
		d := g.unreadable(w, r, err)
		d.id = askedBy(body, nil)
		deny(w, d)
		return m, false
	}
	body = wire.JoinLines(bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))))
	m, err = wire.ParseOutlined(body)
	if len(body) > 0 && body[0] == '[' && errors.Is(err, wire.ErrEnvelope) {
		return wire.Message{Raw: body}, true // a batch
	}
	if err != nil {
		d := denial{status: http.StatusBadRequest, code: wire.CodeParse, text: err.Error()}
		if errors.Is(err, wire.ErrEnvelope) {
			d.code = wire.CodeInvalidRequest
			if wire.ValidID(m.ID) {
				d.id = m.ID
			}
		}
		deny(w, d)
		return m, false
	}
	return m, true
}

// A reply describes how respond answers.
type reply struct {
	forms
	primed    bool            // an event stream begins with an event without data
	stateless bool            // errors have their own HTTP status
	status    int             // in place of 200; 0 means 200
	over      <-chan struct{} // closed when the session ends
	slow      func()          // called when the host left an answer unread for too long; may be nil
}

// An ending is how respond ended.
type ending int

const (
	asText   ending = iota // with a JSON response
	onStream               // with an event stream, which the host may resume
	hostGone               // the host left before anything was sent
)

// respond waits for the messages on a stream and sends them to the host. An answer without
// other messages is sent as JSON, unless the host prefers events. An event stream is sent if
// other messages come first or the answer takes long. answer is nil unless it was sent as
// JSON or as the only event. No limit applies here, because the request may have run.
func (g *Gateway) respond(w http.ResponseWriter, r *http.Request, st *stream, how reply) (answer []byte, ended ending) {
	late := time.NewTimer(g.streamAfter)
	defer late.Stop()
	for waiting := true; waiting; {
		var only, ready bool
		answer, only, ready = st.answer()
		status := statusOf(answer, how.stateless)
		if status == http.StatusOK {
			status = cmp.Or(how.status, status)
		}
		switch {
		case only && answer == nil:
			w.WriteHeader(http.StatusAccepted)
			return nil, asText
		case only && (!how.events || how.text && (!how.eventsFirst || status != http.StatusOK)):
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stall))
			w.Header().Set("Cache-Control", "no-cache")
			if slow := writeJSON(w, status, answer); slow && how.slow != nil {
				how.slow()
			}
			return answer, asText
		case ready && how.events:
			waiting = false
			continue
		}
		select {
		case <-st.wake:
		case <-late.C:
			waiting = !how.events
		case <-r.Context().Done():
			return nil, hostGone
		}
	}
	carrier, before, _ := st.carry(0)
	events := eventStream(w)
	events.primed, events.slow = how.primed && st.ids, how.slow
	if !events.serve(r.Context(), st, carrier, before, how.over) && !st.ids {
		return nil, hostGone
	}
	return answer, onStream
}

// statusOf returns the HTTP status of an answer.
func statusOf(answer []byte, stateless bool) int {
	head, _, _ := bytes.Cut(answer, []byte(`"result":`)) // a result, which may be large, is not parsed
	if !bytes.Contains(head, []byte(`"error":`)) {
		return http.StatusOK
	}
	failure := wire.Get(answer, "error")
	if failure == nil {
		return http.StatusOK
	}
	switch code := wire.ParseError(failure).Code; {
	case code == transports.CodeTooLarge && bytes.Contains(failure, []byte("gateway.max_response_bytes")):
		return http.StatusInternalServerError
	case code == wire.CodeInvalidRequest && string(wire.Get(answer, "id")) == "null":
		return http.StatusBadRequest // not a request, such as a batch in a version without batches
	case !stateless:
		return http.StatusOK
	case code == wire.CodeMethodNotFound:
		return http.StatusNotFound
	case code == wire.CodeInvalidParams, code == wire.CodeInvalidRequest, code <= -32020 && code >= -32022:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// get opens the standalone stream of a session, or resumes a stream that the host has lost.
func (g *Gateway) get(w http.ResponseWriter, r *http.Request, principal, namespace string) {
	id, version := r.Header.Get("Mcp-Session-Id"), r.Header.Get("MCP-Protocol-Version")
	switch {
	case id == "" && version == "" && namespace != "" && wantsLegacy(r):
		g.legacy(w, r, principal, namespace)
		return
	case !acceptable(r).events:
		deny(w, denial{status: http.StatusNotAcceptable, text: wantsEvents})
		return
	}
	s := g.sessionOf(id, principal, namespace)
	if s == nil {
		noSession(w, r, nil)
		return
	}
	defer s.done()
	st, from := s.standalone, int64(0)
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		st, from = s.find(last)
	}
	if st == s.standalone { // the stream of a call is not limited: the call may have run
		listening, leave, ok := g.takePlace(w, r, nil, principal, namespace, nil)
		if !ok {
			return
		}
		defer leave()
		r = listening
		s.read(1)
		defer s.read(-1)
	}
	var carrier int
	var before int64
	ok := st != nil
	if ok {
		carrier, before, ok = st.carry(from)
	}
	if !ok {
		deny(w, denial{status: http.StatusBadRequest, text: "the events after this Last-Event-ID are no longer kept"})
		return
	}
	response := eventStream(w)
	response.primed, response.slow = version >= resumableVersion, s.slow
	response.serve(r.Context(), st, carrier, before, s.over)
}
