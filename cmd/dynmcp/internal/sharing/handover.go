package sharing

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// lost returns the lines for the host after its run has ended: errors for the requests that the
// run may have begun, and cancellations of the run's own requests. Unsent and repeatable requests
// go to the next run.
func (s *session) lost(unsent []byte) (lines []byte) {
	later := requestsOf(unsent)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.pending {
		if !later[id] && r.message.Method == "" {
			lines = appendFailure(lines, id, transports.Unknown)
			delete(s.pending, id)
		}
	}
	for id := range s.asked {
		lines = fmt.Appendf(lines, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"the dynmcp that asked has ended"}}`+"\n", id)
	}
	clear(s.asked)
	clear(s.replayed)
	clear(s.relistening)
	s.runs++
	return lines
}

// requestsOf returns the ids of the requests in lines of the host.
func requestsOf(lines []byte) map[string]bool {
	ids := map[string]bool{}
	for line := range bytes.Lines(lines) {
		if m, err := wire.Parse(bytes.TrimSpace(line)); err == nil && m.IsRequest() {
			ids[string(m.ID)] = true
		}
	}
	return ids
}

// fail returns errors for all pending and unsent requests, because no run will answer them.
func (s *session) fail(unsent []byte) (lines []byte) {
	later := requestsOf(unsent)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.pending {
		if !later[id] {
			lines = appendFailure(lines, id, transports.Unknown)
		}
	}
	for id := range later {
		lines = appendFailure(lines, id, transports.NotSent)
	}
	clear(s.pending)
	return lines
}

func appendFailure(lines []byte, id string, outcome transports.Outcome) []byte {
	hint := "call again"
	if outcome == transports.Unknown {
		hint = "check whether it took effect before retrying"
	}
	for _, piece := range wire.Failure([]byte(id), &wire.Error{
		Code:    transports.CodeShuttingDown,
		Message: "the dynmcp that served this host has ended",
		Data:    fmt.Appendf(nil, `{"source":"dynmcp","outcome":%q,"hint":%q}`, outcome, hint),
	}) {
		lines = append(lines, piece...)
	}
	return append(lines, '\n')
}

// replay returns the first lines for the next run: requests that restore the state of the host,
// and repeatable requests of the host that the last run has not answered, unless they are
// unsent.
func (s *session) replay(unsent []byte) (lines []byte) {
	later := requestsOf(unsent)
	s.mu.Lock()
	defer s.mu.Unlock()
	restore := func(m wire.Message, uri []byte) (id string) {
		if m.Method == "" {
			return ""
		}
		id = string(wire.Quote("dynmcp-" + rand.Text()))
		s.replayed[id] = uri
		lines = append(append(lines, wire.Set(m.Raw, "id", []byte(id))...), '\n')
		return id
	}
	if s.result != nil {
		s.greeting = restore(s.initialize, nil)
	} else if r, waits := s.pending[string(s.initialize.ID)]; waits && r.message.Method == "initialize" && !later[string(s.initialize.ID)] {
		lines = append(append(lines, s.initialize.Raw...), '\n')
	}
	if s.initialized {
		lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"...)
	}
	restore(s.level, nil)
	for _, uri := range slices.Sorted(maps.Keys(s.subscribed)) {
		restore(s.subscribed[uri], []byte(uri))
	}
	for _, r := range s.relistenLocked(later) {
		lines = append(append(lines, r.message.Raw...), '\n')
	}
	return lines
}

// relistenLocked returns the repeatable pending requests in order of arrival, without initialize
// and the unsent requests later.
func (s *session) relistenLocked(later map[string]bool) (again []request) {
	for id, r := range s.pending {
		if r.message.Method != "" && id != string(s.initialize.ID) && !later[id] {
			again = append(again, r)
			s.relistening[id] = r.acked
		}
	}
	slices.SortFunc(again, func(a, b request) int { return a.number - b.number })
	return again
}

// restoredLocked handles the answer to a request that restores the state of the host. After the
// restoration, all lists and all subscribed resources may have changed.
func (s *session) restoredLocked(m wire.Message, lines []byte) ([]byte, error) {
	uri := s.replayed[string(m.ID)]
	delete(s.replayed, string(m.ID))
	switch {
	case uri != nil && m.Result != nil:
		return appendUpdate(lines, uri, nil), nil
	case string(m.ID) != s.greeting:
		return lines, nil
	}
	before, now := wire.Get(s.result, "protocolVersion"), wire.Get(m.Result, "protocolVersion")
	if !bytes.Equal(before, now) {
		return lines, fmt.Errorf("the next one does not speak %s: %s%s", before, now, m.Error)
	}
	if !s.initialized {
		return lines, nil
	}
	changes := []byte(`{}`)
	for _, kind := range listKinds {
		if changed := wire.Get(s.result, "capabilities", kind, "listChanged"); changed != nil {
			changes = wire.Set(changes, kind+"ListChanged", changed)
		}
	}
	return appendChanges(lines, changes, nil), nil
}

// listKinds are the lists with change notifications.
var listKinds = []string{"tools", "prompts", "resources"}

// appendChanges appends a notification for everything that the host subscribes to in wants. If
// id is not nil, it is the id of the subscription that the notifications belong to.
func appendChanges(lines, wants, id []byte) []byte {
	for _, kind := range listKinds {
		if string(wire.Get(wants, kind+"ListChanged")) != "true" {
			continue
		}
		lines = fmt.Appendf(lines, `{"jsonrpc":"2.0","method":"notifications/%s/list_changed"`, kind)
		if id != nil {
			lines = fmt.Appendf(lines, `,"params":{"_meta":{%q:%s}}`, transports.MetaSubscriptionID, id)
		}
		lines = append(lines, '}', '\n')
	}
	for uri := range wire.Elements(wire.Get(wants, "resourceSubscriptions")) {
		lines = appendUpdate(lines, uri, id)
	}
	return lines
}

// appendUpdate appends the notification that a resource has changed. id is as in appendChanges.
func appendUpdate(lines, uri, id []byte) []byte {
	params := fmt.Appendf(nil, `{"uri":%s}`, uri)
	if id != nil {
		params = transports.SetMeta(params, transports.MetaSubscriptionID, id)
	}
	return fmt.Appendf(lines, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":%s}`+"\n", params)
}
