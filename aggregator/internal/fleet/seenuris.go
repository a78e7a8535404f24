package fleet

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Limits for one upstream, so that results with many URIs neither use much memory nor displace the
// URIs of others.
const (
	maxURIs      = 1024 // URIs in each of the two generations
	maxURIsOfOne = 256  // URIs of one result
	maxURILength = 2048 // bytes of a URI; longer ones are data
)

// seenURIs are the URIs in an upstream's results, in resource links and embedded resources: a host
// may read them although no list contains them. The oldest are forgotten.
type seenURIs struct {
	mu       sync.Mutex
	now, old map[string]bool // old is the content of now when it was full
}

// AddFrom adds the URIs in a result. One search for bytes excludes most results, which have
// none.
func (s *seenURIs) AddFrom(result json.RawMessage) {
	key := []byte(`"uri"`)
	for range maxURIsOfOne {
		at := bytes.Index(result, key)
		if at < 0 {
			return
		}
		result = result[at+len(key):]
		// Inside a string the quotes would be escaped, so this is the name of a member, or a
		// string without a following colon.
		after := bytes.TrimLeft(result, " \t\r\n")
		if len(after) == 0 || after[0] != ':' {
			continue
		}
		after = bytes.TrimLeft(after[1:], " \t\r\n")
		if end, err := wire.Skip(after, 0); err == nil {
			if uri, ok := wire.Text(after[:end]); ok {
				s.Add(uri)
			}
			result = after[end:]
		}
	}
}

// Add adds a URI.
func (s *seenURIs) Add(uri string) {
	if uri == "" || len(uri) > maxURILength {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.now) >= maxURIs {
		s.old, s.now = s.now, nil
	}
	if s.now == nil {
		s.now = map[string]bool{}
	}
	s.now[uri] = true
}

func (s *seenURIs) has(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now[uri] || s.old[uri]
}
