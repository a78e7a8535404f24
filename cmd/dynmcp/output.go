package main

// This file implements what a person sees, by four rules.
//
//   - Results go to stdout, everything else to stderr.
//   - Colour and progress appear on terminals only, colour only while NO_COLOR
//     is not set.
//   - On a terminal, characters that act instead of being seen (control
//     characters, bidirectional overrides, zero-width ones) are written as
//     \u{…}: the output of upstreams is not to be trusted. Files and pipes get
//     every byte as it is.
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

// A terminal is stdout or stderr, which may be a terminal, with the rules above.
type terminal struct {
	w           io.Writer
	interactive bool // it is one
	colour      bool
	width       int   // in columns; 0 is unlimited
	err         error // of the first write that failed
}

func newTerminal(w io.Writer) *terminal {
	t := &terminal{w: w}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return t
	}
	t.interactive = true
	t.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		t.width = width
	}
	return t
}

func stdout(cmd *cobra.Command) *terminal { return newTerminal(cmd.OutOrStdout()) }
func stderr(cmd *cobra.Command) *terminal { return newTerminal(cmd.ErrOrStderr()) }

// Write implements io.Writer for text that may come from others.
func (t *terminal) Write(p []byte) (int, error) {
	text := string(p)
	if t.interactive {
		text = visible(text)
	}
	if _, err := io.WriteString(t.w, text); err != nil {
		if t.err == nil {
			t.err = fmt.Errorf("cannot write the result: %w", err)
		}
		return 0, err
	}
	return len(p), nil
}

func (t *terminal) printf(format string, args ...any) { fmt.Fprintf(t, format, args...) }

// A colour is a parameter of the terminal's SGR sequence.
type colour string

const (
	green  colour = "32"
	red    colour = "31"
	yellow colour = "33"
	dim    colour = "2"
)

// paint writes a word in a colour.
func (t *terminal) paint(c colour, text string) {
	if !t.colour {
		t.printf("%s", text)
		return
	}
	fmt.Fprintf(t.w, "\x1b[%sm%s\x1b[0m", c, visible(text))
}

// visible writes characters that a terminal would obey, or would not show, as
// \u{…}. Line breaks and tabs stay.
func visible(text string) string {
	if !strings.ContainsFunc(text, invisible) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case invisible(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func invisible(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == utf8.RuneError ||
		r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Variation_Selector, r)
}

// writeJSON prints a value for programs, without escaping < and > for HTML.
func writeJSON(out *terminal, value any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(value)
	return cmp.Or(out.err, err)
}

// indented puts a prefix in front of every line of a text.
func indented(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix)
}

// A table has a header and rows of as many cells.
type table struct {
	header []string
	rows   [][]string
	shrink int // the column that is cut when the table is too wide
}

const (
	columnGap = 2
	minColumn = 8 // what a column keeps on the narrowest terminal
)

// write prints the table: columns as wide as their longest cell, the last one
// not padded.
func (t *table) write(out *terminal) {
	widths := t.widths(out.width)
	for i, row := range append([][]string{t.header}, t.rows...) {
		var line strings.Builder
		for c, cell := range row {
			cell = truncate(oneLine(cell), widths[c])
			line.WriteString(cell)
			if c < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[c]-columns(cell)+columnGap))
			}
		}
		if i == 0 {
			out.paint(dim, line.String())
			out.printf("\n")
			continue
		}
		out.printf("%s\n", line.String())
	}
}

func (t *table) widths(available int) []int {
	widths := make([]int, len(t.header))
	total := columnGap * (len(widths) - 1)
	for c := range widths {
		for _, row := range append(t.rows, t.header) {
			widths[c] = max(widths[c], columns(oneLine(row[c])))
		}
		total += widths[c]
	}
	if available > 0 && total > available {
		widths[t.shrink] = max(min(minColumn, widths[t.shrink]), widths[t.shrink]-(total-available))
	}
	return widths
}

// oneLine folds white space, line breaks too, into single spaces.
func oneLine(text string) string { return visible(strings.Join(strings.Fields(text), " ")) }

// columns counts characters. Wide ones of East Asia count once: a table that is
// off by a few columns can still be read.
func columns(text string) int { return utf8.RuneCountInString(text) }

// truncate cuts text to at most max columns, the last three of them dots if there
// is room for more than dots.
func truncate(text string, max int) string {
	switch {
	case columns(text) <= max:
		return text
	case max <= 3:
		return string([]rune(text)[:max])
	}
	return string([]rune(text)[:max-3]) + "..."
}

// A progress shows on a terminal, in one line, what is being waited for and for
// how long already. On anything else it shows nothing.
type progress struct {
	out   *terminal
	began time.Time
	stop  chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex // held while the line is written, too: no one clears half of it
	text  string
	drawn bool
}

// progressDelay is how long a wait may be without a progress line.
const progressDelay = 300 * time.Millisecond

func showProgress(out *terminal, text string) *progress {
	p := &progress{out: out, began: time.Now(), stop: make(chan struct{}), text: text}
	if out.interactive {
		p.done.Go(p.run)
	}
	return p
}

func (p *progress) run() {
	ticker := time.NewTicker(progressDelay / 3)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			p.clear()
			return
		case <-ticker.C:
			if time.Since(p.began) >= progressDelay {
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
	if p.out.width > 0 {
		text = truncate(text, max(0, p.out.width-1-len(elapsed)))
	}
	p.drawn = true
	fmt.Fprintf(p.out.w, "\r\x1b[K%s%s", text, elapsed)
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.out.w, "\r\x1b[K")
	}
}

// say changes the text of the line.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// end removes the line; it may be called more than once.
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
