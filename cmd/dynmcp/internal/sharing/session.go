package sharing

import (
	"bytes"
	"fmt"
	"net"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A session is the state of a host's MCP session, which outlives its runs: the pending requests
// of both sides, and the state that handover.go restores. One goroutine sends and one receives.
type session struct {
	mu      sync.Mutex
	pending map[string]request // requests of the host, by their ids
	last    int                // number of the last request of the host
	asked   map[string][]byte  // requests of the run: the ids in the run, by the ids for the host
	runs    int                // ended runs

	// The state of the host in a run.
	initialize  wire.Message            // the request
	result      []byte                  // the result of initialize, nil before it arrives
	initialized bool                    // the notification was sent
	level       wire.Message            // the last logging/setLevel request
	subscribed  map[string]wire.Message // resources/subscribe requests, by their URIs

	// The pending requests that restore that state in a run.
	replayed    map[string][]byte // by id, the URI that a resources/subscribe is for, or nil
	greeting    string            // the id of the initialize request
	relistening map[string]bool   // ids of repeated subscriptions/listen requests
}

// A request is a pending request of the host.
type request struct {
	number  int          // the order of arrival
	message wire.Message // empty if the request must not be repeated
	acked   bool         // the subscription was acknowledged
}

// repeatable are the requests that may be sent again although a run may have seen them. They
// start nothing and change only the state of that run.
var repeatable = map[string]bool{
	"initialize": true, "server/discover": true, "ping": true, "logging/setLevel": true,
	"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
	"resources/subscribe": true, "resources/unsubscribe": true, "subscriptions/listen": true,
}

func newSession() *session {
	return &session{
		pending: map[string]request{}, asked: map[string][]byte{}, subscribed: map[string]wire.Message{},
		replayed: map[string][]byte{}, relistening: map[string]bool{},
	}
}

// send sends lines of the host, and returns the lines that were not sent completely.
func (s *session) send(to *net.UnixConn, lines []byte) (unsent []byte) {
	type piece struct {
		message wire.Message
		from    int   // in lines
		end     int64 // in out
	}
	var pieces []piece
	var out net.Buffers
	from, end := 0, int64(0)
	for line := range bytes.Lines(lines) {
		m, _ := wire.Parse(bytes.TrimSpace(line)) // the run refuses invalid lines
		out = append(out, s.sending(line, m))
		end += int64(len(out[len(out)-1]))
		pieces = append(pieces, piece{m, from, end})
		from += len(line)
	}
	n, err := out.WriteTo(to)
	for _, p := range pieces {
		if err != nil && n+1 < p.end { // a line without its newline may already be read
			return lines[p.from:]
		}
		s.sent(p.message)
	}
	return nil
}

// sending records a line before it is sent, and returns the line for the run, nil for none.
func (s *session) sending(line []byte, m wire.Message) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isBatch(line):
		for element := range wire.Elements(bytes.TrimSpace(line)) {
			if m, err := wire.Parse(element); err == nil && m.IsRequest() {
				s.addLocked(m, false)
			}
		}
	case m.IsRequest():
		s.addLocked(m, repeatable[m.Method])
		if m.Method == "initialize" && s.result == nil { // the result may arrive before sent is called
			s.initialize = m.Clone()
		}
	case m.Method == "notifications/cancelled":
		delete(s.pending, string(wire.Get(m.Params, "requestId")))
	case m.Method == "" && m.ID != nil:
		id, known := s.asked[string(m.ID)]
		delete(s.asked, string(m.ID))
		switch {
		case !known: // an ended run asked, or this one cancelled its request
			return nil
		case !bytes.Equal(id, m.ID):
			return append(wire.Set(bytes.TrimSpace(line), "id", id), '\n')
		}
	}
	return line
}

func isBatch(line []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(line), []byte{'['}) }

// addLocked adds a request of the host to the pending ones. An unsent request keeps its number
// when it is added again. again tells whether it is repeatable.
func (s *session) addLocked(m wire.Message, again bool) {
	r, known := s.pending[string(m.ID)]
	if !known {
		s.last++
		r.number = s.last
	}
	if again {
		r.message = m.Clone()
	}
	s.pending[string(m.ID)] = r
}

// sent records the change of state in a message that was sent.
func (s *session) sent(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method {
	case "notifications/initialized":
		s.initialized = true
	case "logging/setLevel":
		s.level = m.Clone()
	case "resources/subscribe":
		s.subscribed[string(wire.Get(m.Params, "uri"))] = m.Clone()
	case "resources/unsubscribe":
		delete(s.subscribed, string(wire.Get(m.Params, "uri")))
	}
}

// received appends a message of the run, in the form for the host, to lines.
func (s *session) received(m wire.Message, lines []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := m.Raw
	switch {
	case isBatch(m.Raw):
		for element := range wire.Elements(m.Raw) {
			if m, err := wire.Parse(element); err == nil && m.Method == "" {
				delete(s.pending, string(m.ID))
			}
		}
	case m.IsRequest():
		id := s.hostIDLocked(m.ID)
		s.asked[string(id)] = bytes.Clone(m.ID)
		if s.runs > 0 {
			raw = wire.Set(raw, "id", id)
		}
	case m.Method == "notifications/cancelled":
		if id := wire.Get(m.Params, "requestId"); id != nil {
			id = s.hostIDLocked(id)
			delete(s.asked, string(id))
			raw = wire.Set(raw, "params", wire.Set(m.Params, "requestId", id))
		}
	case m.Method == "notifications/subscriptions/acknowledged":
		if id := wire.Get(m.Params, "_meta", transports.MetaSubscriptionID); s.acknowledgedLocked(id) {
			return appendChanges(lines, wire.Get(m.Params, "notifications"), id), nil
		}
	case m.Method == "" && m.ID != nil:
		if _, ours := s.replayed[string(m.ID)]; ours {
			return s.restoredLocked(m, lines)
		}
		if s.pending[string(m.ID)].acked {
			return lines, nil // the run ends, and the next one continues the subscription
		}
		if s.result == nil && m.Result != nil && bytes.Equal(m.ID, s.initialize.ID) {
			s.result = bytes.Clone(m.Result)
		}
		delete(s.pending, string(m.ID))
	}
	return append(append(lines, raw...), '\n'), nil
}

// hostIDLocked returns the id for the host of a request of the run. From the second run on it is
// another one, because runs use the same ids.
func (s *session) hostIDLocked(id []byte) []byte {
	if s.runs == 0 {
		return id
	}
	return wire.Quote(fmt.Sprintf("dynmcp-%d-%s", s.runs, id))
}

// acknowledgedLocked records that a subscription has begun, and reports whether the host knows
// that from an earlier run.
func (s *session) acknowledgedLocked(id []byte) (known bool) {
	r, waits := s.pending[string(id)]
	known = r.acked && s.relistening[string(id)]
	delete(s.relistening, string(id))
	if waits {
		r.acked = true
		s.pending[string(id)] = r
	}
	return known
}
