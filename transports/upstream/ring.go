package upstream

import (
	"bufio"
	"io"
	"strings"
	"sync"

	"dynmcp/internal/redact"
	"dynmcp/transports"
)

const (
	tailLines = 20
	tailBytes = 2 << 10
)

// A ring keeps the last lines a child wrote to stderr.
type ring struct {
	max    int
	redact *redact.Redactor // of what comes in

	mu    sync.Mutex
	lines []string
	size  int
}

// drain reads r to its end, whatever it holds: a child must never block on its
// stderr. A line of more than 4 KiB counts as several.
func (g *ring) drain(r io.Reader, each func(line string)) {
	reader := bufio.NewReaderSize(r, 4<<10)
	rest := "" // of the line so far, what may be the beginning of a secret
	for {
		text, err := reader.ReadSlice('\n')
		line := rest + strings.TrimRight(string(text), "\r\n")
		if rest = ""; err == bufio.ErrBufferFull {
			line, rest = g.redact.Split(line)
		} else {
			line = g.redact.String(line)
		}
		if line != "" {
			line = transports.Printable([]byte(line), len(line))
			g.add(line)
			each(line)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

func (g *ring) add(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, line)
	g.size += len(line)
	for g.size > g.max {
		g.size -= len(g.lines[0])
		g.lines = g.lines[1:]
	}
}

// tail returns the last lines, at most 20 and 2 KiB.
func (g *ring) tail() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	lines := g.lines[max(0, len(g.lines)-tailLines):]
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
