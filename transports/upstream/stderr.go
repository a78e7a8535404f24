package upstream

import (
	"bufio"
	"io"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/transports"
)

const (
	tailLines = 20
	tailBytes = 2 << 10
)

// A stderrTail keeps the last lines a child wrote to stderr.
type stderrTail struct {
	max    int
	redact *redact.Redactor // of what comes in

	mu    sync.Mutex
	lines []string
	size  int
}

// drain reads r to its end, whatever it holds: a child must never block on its
// stderr. A line of more than 4 KiB counts as several.
func (s *stderrTail) drain(r io.Reader, each func(line string)) {
	reader := bufio.NewReaderSize(r, 4<<10)
	rest := "" // of the line so far, what may be the beginning of a secret
	for {
		text, err := reader.ReadSlice('\n')
		line := rest + strings.TrimRight(string(text), "\r\n")
		if rest = ""; err == bufio.ErrBufferFull {
			line, rest = s.redact.Split(line)
		} else {
			line = s.redact.String(line)
		}
		if line != "" {
			line = transports.Printable([]byte(line), len(line))
			s.add(line)
			each(line)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

func (s *stderrTail) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	s.size += len(line)
	for s.size > s.max {
		s.size -= len(s.lines[0])
		s.lines = s.lines[1:]
	}
}

// tail returns the last lines, at most 20 and 2 KiB.
func (s *stderrTail) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines[max(0, len(s.lines)-tailLines):]
	text := strings.Join(lines, "\n")
	if len(text) <= tailBytes {
		return text
	}
	text = text[len(text)-tailBytes:]
	if _, whole, ok := strings.Cut(text, "\n"); ok {
		text = whole
	}
	return strings.ToValidUTF8(text, "")
}
