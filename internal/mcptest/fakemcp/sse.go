package main

import (
	"crypto/rand"
	"net/http"
)

// serveSSE serves the HTTP+SSE transport of 2024-11-05: a GET opens the stream, whose first event has
// the path for POSTs. All messages of the server are sent on the stream.
func (s *web) serveSSE(x *exchange) {
	switch x.r.Method {
	case http.MethodGet:
		s.openSSE(x)
	case http.MethodPost:
		s.postSSE(x)
	default:
		x.refuse(http.StatusMethodNotAllowed, "method not allowed")
	}
}

func (s *web) openSSE(x *exchange) {
	id, box := "sess-"+rand.Text(), newOutbox()
	s.mu.Lock()
	s.sessions[id] = &session{newPeer(s.fake, box.put), box}
	s.mu.Unlock()
	defer s.forget(id)
	startEvents(x.w)
	writeEvent(x.w, "endpoint", []byte("/messages?sessionId="+id))
	box.serve(x)
}

func (s *web) postSSE(x *exchange) {
	known := s.session(x.r.URL.Query().Get("sessionId"))
	if known == nil {
		x.refuse(http.StatusNotFound, "Session not found")
		return
	}
	x.w.WriteHeader(http.StatusAccepted)
	flush(x.w)
	if c := known.peer.receive(x.body, known.box.put); c != nil {
		c.header = x.r.Header
		c.serve()
	}
}
