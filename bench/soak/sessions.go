package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

const (
	sessionCalls  = 16  // at once
	sessionLeast  = 100 // least number of calls before a session is forgotten
	sessionSpread = 100 // it may be up to so many more
)

// sessions makes n calls to a server that forgets its session during calls, and compares
// its record with the answers.
func (s *soak) sessions(n int) error {
	began := time.Now()
	server := &forgetful{ran: map[int]int{}, refused: map[int]int{}}
	listening := httptest.NewServer(server)
	defer listening.Close()
	h, err := s.start(entry{name: "forgetful", fields: map[string]any{"url": listening.URL}})
	if err != nil {
		return err
	}
	defer h.End()

	// The tally accepts failures, since judgeSessions compares them with the record.
	t := newTally(func(int) bool { return true })
	said := map[int]string{} // outcomes of failed calls by number
	serverOf := func(int) string { return "forgetful" }
	err = h.keep(t, n, sessionCalls, serverOf, func(a answer) {
		if a.Result.IsError {
			id, _ := strconv.Atoi(string(a.ID)) // the tally has checked it
			said[id] = web.Outcome(a.Line)
			if len(said) <= 5 {
				fmt.Printf("  call %d failed: %.300s\n", id, strings.TrimSpace(a.Line))
			}
		}
	})
	if err != nil {
		s.judge(t)
		return err
	}
	if err := h.Stop(); err != nil {
		return err
	}
	s.judge(t)
	s.judgeSessions(server, n, said, rounded(time.Since(began)))
	s.Must("processes left", h.remaining(), 0)
	return nil
}

// judgeSessions compares the record of the server with the failures.
func (s *soak) judgeSessions(f *forgetful, n int, said map[int]string, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all ledger.Account
	repeated := 0
	for id := range n {
		outcome, failed := said[id]
		all.Add(f.ran[id], failed, outcome)
		if f.ran[id] > 1 {
			fmt.Printf("  call %d ran %d times and was refused %d times\n", id, f.ran[id], f.refused[id])
		}
		if f.refused[id] > 0 && f.ran[id] > 0 {
			repeated++
		}
	}
	fmt.Printf("sessions: %d calls in %v, %d at once, %d sessions forgotten with %d calls under way, %d calls refused: %d ran once, %d again, %d never; %d were repeated; %d failed\n",
		n, took, sessionCalls, f.forgotten, f.underWay, len(f.refused), all.Once, all.Again, all.Never, repeated, len(said))
	all.Judge(&s.Verdict)
	s.Must("calls that ran and have no result", all.Lost, 0)
	if n >= 10*sessionLeast && (f.underWay == 0 || len(f.refused) == 0) {
		s.Fail("no session was forgotten while calls were under way, or none was refused")
	}
}

// A forgetful server has one session at a time and answers 404 to all others.
type forgetful struct {
	mu        sync.Mutex
	session   string
	left      int // calls before it is forgotten
	running   int
	ran       map[int]int // by nonce
	refused   map[int]int // by nonce
	forgotten int
	underWay  int // running calls when a session was forgotten, in total
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the request was broken off
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments struct{ Nonce int } }
	}
	_ = json.Unmarshal(body, &m) // a GET has none
	switch {
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", f.begin())
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	case m.Method == "tools/call":
		f.call(w, r.Header.Get("Mcp-Session-Id"), m.ID, m.Params.Arguments.Nonce)
		return
	case m.Method != "" && !f.knows(r.Header.Get("Mcp-Session-Id")):
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	hello(w, m.ID, m.Method)
}

// begin begins a session, which replaces the earlier one.
func (f *forgetful) begin() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session, f.left = rand.Text(), sessionLeast+mathrand.IntN(sessionSpread)
	return f.session
}

func (f *forgetful) knows(session string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return session == f.session
}

// call runs a call of the current session for a short time, and answers with JSON or an
// event. The session is forgotten at the start of its last call.
func (f *forgetful) call(w http.ResponseWriter, session string, id json.RawMessage, nonce int) {
	if !f.enter(session, nonce) {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	defer f.leave()
	time.Sleep(mathrand.N(20 * time.Millisecond))
	result := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ran"}],"structuredContent":{"nonce":%d}}}`, id, nonce)
	if nonce%2 == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, result)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", result)
}

// enter records whether a call is run or refused.
func (f *forgetful) enter(session string, nonce int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if session == "" || session != f.session {
		f.refused[nonce]++
		return false
	}
	f.ran[nonce]++
	f.running++
	if f.left--; f.left <= 0 {
		f.session = ""
		f.forgotten++
		f.underWay += f.running
	}
	return true
}

func (f *forgetful) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
}
