package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// reply is the response to one POST. It is an event stream, or with plain a JSON body if the answer is
// the first message.
type reply struct {
	plain  bool
	modern bool // errors of the protocol have a status

	mu     sync.Mutex
	w      http.ResponseWriter // nil after the end of the POST: later messages are dropped
	events bool
}

func (r *reply) send(msg []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.w == nil:
		return
	case r.events:
	case r.statusOf(msg) != 0 || r.plain && isAnswer(msg):
		r.body(msg)
		return
	default:
		startEvents(r.w)
		r.events = true
	}
	writeEvent(r.w, "", msg)
}

// body sends the answer as the whole body.
func (r *reply) body(msg []byte) {
	r.w.Header().Set("Content-Type", "application/json")
	if status := r.statusOf(msg); status != 0 {
		r.w.WriteHeader(status)
	}
	_, _ = r.w.Write(msg)
	r.w = nil
}

func (r *reply) accepted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w != nil && !r.events {
		r.w.WriteHeader(http.StatusAccepted)
	}
}

// close ends the POST. The stream of a cancelled call ends without an answer.
func (r *reply) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w = nil
}

func isAnswer(msg []byte) bool {
	var m message
	return json.Unmarshal(msg, &m) == nil && m.Method == ""
}

// statusOf returns the HTTP status of an error of the new protocol, 0 for other messages.
func (r *reply) statusOf(msg []byte) int {
	var m struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if !r.modern || json.Unmarshal(msg, &m) != nil {
		return 0
	}
	switch m.Error.Code {
	case -32601:
		return http.StatusNotFound
	case -32602, -32022, -32021:
		return http.StatusBadRequest
	}
	return 0
}

func startEvents(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(http.StatusOK)
	// A comment is not an event, but a block of its own for readers that split at blank lines.
	_, _ = w.Write([]byte(": fakemcp\n\n"))
	flush(w)
}

// writeEvent sends one event. A message with line breaks has several data lines.
func writeEvent(w http.ResponseWriter, event string, msg []byte) {
	var b bytes.Buffer
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	for line := range bytes.SplitSeq(bytes.ReplaceAll(msg, []byte("\r\n"), []byte("\n")), []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, _ = w.Write(b.Bytes())
	flush(w)
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// outbox stores messages of no POST until a GET stream sends them.
type outbox struct {
	mu     sync.Mutex
	msgs   [][]byte
	more   chan struct{} // holds one token when msgs is not empty
	closed chan struct{}
}

func newOutbox() *outbox {
	return &outbox{more: make(chan struct{}, 1), closed: make(chan struct{})}
}

func (o *outbox) put(msg []byte) {
	o.mu.Lock()
	o.msgs = append(o.msgs, msg)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

func (o *outbox) take() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	msgs := o.msgs
	o.msgs = nil
	return msgs
}

func (o *outbox) close() { close(o.closed) }

// serve serves a GET stream until the client or the session ends.
func (o *outbox) serve(x *exchange) {
	startEvents(x.w)
	for {
		for _, msg := range o.take() {
			writeEvent(x.w, "message", msg)
		}
		select {
		case <-o.more:
		case <-o.closed:
			return
		case <-x.r.Context().Done():
			return
		}
	}
}

// decodeHeader decodes a value that was encoded for a header.
func decodeHeader(v string) string {
	inner, ok := strings.CutPrefix(v, "=?base64?")
	inner, ok2 := strings.CutSuffix(inner, "?=")
	if !ok || !ok2 {
		return v
	}
	if b, err := base64.StdEncoding.DecodeString(inner); err == nil {
		return string(b)
	}
	return v
}
