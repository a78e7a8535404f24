package sharing

import (
	"bytes"
	"fmt"
	"net"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A session is what a relay keeps of the MCP session of its host, which outlives the runs
// that serve it: the requests that wait for an answer, the ids that a next run may use
// again, and the state that handover.go gives to that run. One goroutine sends and one
// receives.
type session struct {
	mu      sync.Mutex
	pending map[string]request // requests of the host, by their ids
	last    int                // number of the last of them
	asked   map[string][]byte  // requests of the run: its ids, by those that the host knows
	runs    int                // that have ended

	// The state that a run keeps of the host.
	initialize  wire.Message            // the request
	result      []byte                  // its result, nil before it has one
	initialized bool                    // the notification
	level       wire.Message            // the last logging/setLevel request
	subscribed  map[string]wire.Message // resources/subscribe requests, by their URIs

	// The requests with which a run is given that state, until it has answered.
	replayed    map[string][]byte // their ids, with the URI that each subscribes to, nil for none
	greeting    string            // the id of the one that initializes
	relistening map[string]bool   // ids of subscriptions/listen requests that were sent again
}

// A request is one of the host that waits for its answer.
type request struct {
	number  int          // requests are sent again in the order in which they came
	message wire.Message // of one that may be sent again, else empty
	acked   bool         // it is a subscription that has begun
}

// repeatable are the requests that may be sent again although a run may have seen them:
// they run nothing, and what they change is on that run alone.
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

// send sends lines of the host, and returns those of which the run has not all.
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
		m, _ := wire.Parse(bytes.TrimSpace(line)) // what is broken the run refuses
		out = append(out, s.sending(line, m))
		end += int64(len(out[len(out)-1]))
		pieces = append(pieces, piece{m, from, end})
		from += len(line)
	}
	n, err := out.WriteTo(to)
	for _, p := range pieces {
		if err != nil && n+1 < p.end { // a line without its end may be read
			return lines[p.from:]
		}
		s.sent(p.message)
	}
	return nil
}

// sending notes a line before it is sent, and returns it as the run is to see it.
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
		if m.Method == "initialize" && s.result == nil { // the result may be received before sent is called
			s.initialize = m.Own()
		}
	case m.Method == "notifications/cancelled":
		delete(s.pending, string(wire.Get(m.Params, "requestId")))
	case m.Method == "" && m.ID != nil:
		id, known := s.asked[string(m.ID)]
		delete(s.asked, string(m.ID))
		switch {
		case !known: // a run that has ended asked, or this one takes its question back
			return nil
		case !bytes.Equal(id, m.ID):
			return append(wire.Set(bytes.TrimSpace(line), "id", id), '\n')
		}
	}
	return line
}

func isBatch(line []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(line), []byte{'['}) }

// addLocked adds a request of the host to those that wait for an answer. It may come
// again, when it was unsent.
func (s *session) addLocked(m wire.Message, again bool) {
	r, known := s.pending[string(m.ID)]
	if !known {
		s.last++
		r.number = s.last
	}
	if again {
		r.message = m.Own()
	}
	s.pending[string(m.ID)] = r
}

// sent notes what a run now knows of the host.
func (s *session) sent(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method {
	case "notifications/initialized":
		s.initialized = true
	case "logging/setLevel":
		s.level = m.Own()
	case "resources/subscribe":
		s.subscribed[string(wire.Get(m.Params, "uri"))] = m.Own()
	case "resources/unsubscribe":
		delete(s.subscribed, string(wire.Get(m.Params, "uri")))
	}
}

// received appends to lines what the host gets of a message of the run.
func (s *session) received(m wire.Message, lines []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := m.Raw
	switch {
	case isBatch(m.Raw):
		s.batchAnsweredLocked(m.Raw)
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
		if s.result == nil && m.Result != nil && bytes.Equal(m.ID, s.initialize.ID) {
			s.result = bytes.Clone(m.Result)
		}
		delete(s.pending, string(m.ID))
	}
	return append(append(lines, raw...), '\n'), nil
}

// batchAnsweredLocked notes which requests the answers of a batch are to.
func (s *session) batchAnsweredLocked(batch []byte) {
	for element := range wire.Elements(batch) {
		if m, err := wire.Parse(element); err == nil && m.Method == "" {
			delete(s.pending, string(m.ID))
		}
	}
}

// hostIDLocked returns the id under which the host knows a request of the run: runs use
// the same ones.
func (s *session) hostIDLocked(id []byte) []byte {
	if s.runs == 0 {
		return id
	}
	return wire.Quote(fmt.Sprintf("dynmcp-%d-%s", s.runs, id))
}

// acknowledgedLocked notes that a subscription has begun, and reports whether the host
// knows of that from an earlier run.
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
