package command

import (
	"bufio"
	"io"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/transports"
)

// Limits of Text.
const (
	tailLines = 20
	tailBytes = 2 << 10
)

// A Tail keeps the last lines of a child's stderr.
type Tail struct {
	Max    int              // bytes to keep
	Redact *redact.Redactor // applied to the input

	mu    sync.Mutex
	lines []string
	size  int
}

// Drain reads r to its end, whatever its content: a child must never block on its stderr. A
// line of more than 4 KiB counts as several.
func (s *Tail) Drain(r io.Reader, each func(line string)) {
	reader := bufio.NewReaderSize(r, 4<<10)
	rest := "" // the end of the previous piece of the line, which may begin a secret
	for {
		text, err := reader.ReadSlice('\n')
		line := rest + strings.TrimRight(string(text), "\r\n")
		if rest = ""; err == bufio.ErrBufferFull {
			line, rest = s.Redact.Split(line)
		} else {
			line = s.Redact.String(line)
		}
		if line != "" {
			line = transports.Printable([]byte(line), len(line))
			s.Add(line)
			each(line)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// Add adds a line.
func (s *Tail) Add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	s.size += len(line)
	for s.size > s.Max {
		s.size -= len(s.lines[0])
		s.lines = s.lines[1:]
	}
}

// Text returns the last lines, at most 20 and 2 KiB.
func (s *Tail) Text() string {
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
