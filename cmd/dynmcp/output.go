package main

// This file implements what a person sees, by four rules.
//
//   - Results go to stdout, everything else goes to stderr.
//   - Colour and progress are written to terminals only, colour only while
//     NO_COLOR is not set.
//   - On a terminal, characters that act instead of being seen (control
//     characters, bidirectional overrides, zero-width ones) are written as
//     \u{…}: what upstreams say is not ours. Into files and pipes every byte
//     goes as it is.
//   - Lists fit the width of the terminal. Elsewhere they have no width.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A screen is stdout or stderr with the manners of this file.
type screen struct {
	w        io.Writer
	terminal bool
	colour   bool
	width    int   // in columns; 0 has no end
	err      error // of the first write that failed
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.terminal = true
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		s.width = width
	}
	return s
}

func stdout(cmd *cobra.Command) *screen { return newScreen(cmd.OutOrStdout()) }
func stderr(cmd *cobra.Command) *screen { return newScreen(cmd.ErrOrStderr()) }

// Write implements io.Writer for text that others may have written.
func (s *screen) Write(p []byte) (int, error) {
	if !s.terminal {
		n, err := s.w.Write(p)
		s.keep(err)
		return n, err
	}
	if _, err := io.WriteString(s.w, visible(string(p))); err != nil {
		s.keep(err)
		return 0, err
	}
	return len(p), nil
}

func (s *screen) keep(err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("the result could not be written: %w", err)
	}
}

func (s *screen) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// A colour is a parameter of the terminal's SGR sequence.
type colour string

const (
	green  colour = "32"
	red    colour = "31"
	yellow colour = "33"
	dim    colour = "2"
)

// paint writes a word of ours in a colour.
func (s *screen) paint(c colour, text string) {
	if !s.colour {
		s.printf("%s", text)
		return
	}
	fmt.Fprintf(s.w, "\x1b[%sm%s\x1b[0m", c, visible(text))
}

// visible writes characters that a terminal would obey, or would not show, as
// \u{…}. Line breaks and tabs stay.
func visible(text string) string {
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unseen(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unseen(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == utf8.RuneError ||
		r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Variation_Selector, r)
}

// writeJSON prints a value for programs. Characters are written as they are,
// < and > too.
func writeJSON(s *screen, value any) error {
	enc := json.NewEncoder(s)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(value)
	return cmp.Or(s.err, err)
}

// indented puts something in front of every line of a text.
func indented(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}

// A table has a header and rows of as many cells.
type table struct {
	header []string
	rows   [][]string
	shrink int // the column that is cut where the table is too wide
}

const gap = 2 // between columns

// write prints the table: columns as wide as their longest cell, the last one
// not padded.
func (t *table) write(s *screen) {
	widths := t.widths(s.width)
	for i, row := range append([][]string{t.header}, t.rows...) {
		var line strings.Builder
		for c, cell := range row {
			cell = truncate(oneLine(cell), widths[c])
			line.WriteString(cell)
			if c < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[c]-columns(cell)+gap))
			}
		}
		if i == 0 {
			s.paint(dim, line.String())
			s.printf("\n")
			continue
		}
		s.printf("%s\n", line.String())
	}
}

// leastWidth is what a column keeps on the narrowest terminal.
const leastWidth = 8

func (t *table) widths(most int) []int {
	widths := make([]int, len(t.header))
	total := gap * (len(widths) - 1)
	for c := range widths {
		for _, row := range append(t.rows, t.header) {
			widths[c] = max(widths[c], columns(oneLine(row[c])))
		}
		total += widths[c]
	}
	if most > 0 && total > most {
		widths[t.shrink] = max(min(leastWidth, widths[t.shrink]), widths[t.shrink]-(total-most))
	}
	return widths
}

// oneLine keeps a cell on its line.
func oneLine(text string) string { return visible(strings.Join(strings.Fields(text), " ")) }

// columns counts characters. Wide ones of East Asia count once: a table that
// is off by a few columns is still read.
func columns(text string) int { return utf8.RuneCountInString(text) }

// truncate cuts text to at most max columns, the last three of them dots if
// there is room for more than dots.
func truncate(text string, max int) string {
	switch {
	case columns(text) <= max:
		return text
	case max <= 3:
		return string([]rune(text)[:max])
	}
	return string([]rune(text)[:max-3]) + "..."
}

// A progress shows on a terminal, in one line, what is waited for and for how
// long. On anything else it shows nothing.
type progress struct {
	s     *screen
	began time.Time
	stop  chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex
	text  string
	drawn bool
}

// A wait shorter than this is not worth a line.
const patience = 300 * time.Millisecond

func showProgress(s *screen, text string) *progress {
	p := &progress{s: s, began: time.Now(), stop: make(chan struct{}), text: text}
	if s.terminal {
		p.done.Go(p.run)
	}
	return p
}

func (p *progress) run() {
	ticker := time.NewTicker(patience / 3)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			p.clear()
			return
		case <-ticker.C:
			if time.Since(p.began) >= patience {
				p.draw()
			}
		}
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := fmt.Sprintf(" (%.1fs)", time.Since(p.began).Seconds())
	text := oneLine(p.text)
	if p.s.width > 0 {
		text = truncate(text, max(0, p.s.width-1-len(elapsed)))
	}
	p.drawn = true
	fmt.Fprintf(p.s.w, "\r\x1b[K%s%s", text, elapsed)
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.s.w, "\r\x1b[K")
	}
}

// say changes what the line says.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// end takes the line away; it may be called more than once.
func (p *progress) end() {
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	p.done.Wait()
}
