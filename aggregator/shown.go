package aggregator

import (
	"bytes"
	"encoding/json"
	"sync"

	"dynmcp/internal/wire"
)

// Bounds of what is remembered of one upstream, so that one that shows many
// URIs costs neither memory nor another's place.
const (
	maxShown       = 1024 // URIs a generation, of which there are two
	maxShownOnce   = 256  // URIs of one result
	maxShownLength = 2048 // bytes of a URI; longer ones are data
)

// shown remembers which URIs an upstream's results held, as resource links and
// embedded resources do: a host may read them although no list has them. The
// oldest are forgotten.
type shown struct {
	mu       sync.Mutex
	now, old map[string]bool // old is what now was when it was full
}

// note remembers the URIs in a result. Most results have none, which one search
// for bytes tells.
func (s *shown) note(result json.RawMessage) {
	key := []byte(`"uri"`)
	for range maxShownOnce {
		at := bytes.Index(result, key)
		if at < 0 {
			return
		}
		result = result[at+len(key):]
		// Within a string the quotes would be escaped, so this is a member's
		// name, or a string that no colon follows.
		after := bytes.TrimLeft(result, " \t\r\n")
		if len(after) == 0 || after[0] != ':' {
			continue
		}
		after = bytes.TrimLeft(after[1:], " \t\r\n")
		if end, err := wire.Skip(after, 0); err == nil {
			if uri, ok := wire.Text(after[:end]); ok {
				s.add(uri)
			}
			result = after[end:]
		}
	}
}

func (s *shown) add(uri string) {
	if uri == "" || len(uri) > maxShownLength {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.now) >= maxShown {
		s.old, s.now = s.now, nil
	}
	if s.now == nil {
		s.now = map[string]bool{}
	}
	s.now[uri] = true
}

func (s *shown) has(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now[uri] || s.old[uri]
}
