package host

import (
	"bytes"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// batchVersion is the one protocol version that has JSON-RPC batches.
const batchVersion = "2025-03-26"

// A batch is several messages of the host in one, whose answers go back in
// one. It is guarded by the session's mutex.
type batch struct {
	left    int // requests that are not answered, and one while it is being read
	answers [][]byte
}

// handleBatch handles the messages of a batch as if each had come by itself.
func (s *Session) handleBatch(raw []byte, via any) {
	s.mu.Lock()
	version := s.version
	s.mu.Unlock()
	if version != batchVersion {
		s.reject(nil, via, nil, wire.CodeInvalidRequest, "a batch is part of protocol version "+batchVersion+" only")
		return
	}
	b, empty := &batch{left: 1}, true
	for element := range wire.Elements(raw) {
		empty = false
		m, err := wire.Parse(element)
		if err != nil || m.IsRequest() {
			s.mu.Lock()
			b.left++
			s.mu.Unlock()
		}
		if err != nil {
			s.reject(b, via, m.ID, wire.CodeInvalidRequest, err.Error())
			continue
		}
		switch {
		case m.IsRequest():
			s.handleRequest(m, b, via)
		case m.IsNotification():
			s.handleNotification(m)
		default:
			s.handleResponse(m)
		}
	}
	if empty {
		s.reject(nil, via, nil, wire.CodeInvalidRequest, "the batch is empty")
		return
	}
	s.writeAnswer(&Request{Via: via}, b, nil)
}

// addLocked takes one answer, or that there is none, and reports whether it was the
// last: then it returns all of them, nil where the host gets nothing.
func (b *batch) addLocked(parts [][]byte) (all [][]byte, last bool) {
	if parts != nil {
		b.answers = append(b.answers, bytes.Join(parts, nil))
	}
	b.left--
	if b.left > 0 || len(b.answers) == 0 {
		return nil, b.left == 0
	}
	return [][]byte{{'['}, bytes.Join(b.answers, []byte{','}), {']'}}, true
}
