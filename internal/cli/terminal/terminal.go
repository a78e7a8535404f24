// Package terminal writes text for people, by four rules.
//
//   - Results go to stdout, everything else to stderr.
//   - Colour and progress appear only on terminals, and colour only if NO_COLOR
//     is not set.
//   - On a terminal, control characters, bidirectional overrides and zero-width
//     characters are escaped as \u{…}, because the output of upstreams is
//     untrusted. Files and pipes get every byte as it is.
//   - On a terminal, tables are truncated and sentences are wrapped at its width.
//     Results of tools, output of servers and commands to copy are never wrapped.
package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/dynmcp/dynmcp/internal/display"
)

// A Writer writes to stdout or stderr by the rules above.
type Writer struct {
	W           io.Writer
	Interactive bool // W is a terminal
	Colour      bool
	Width       int   // in columns; 0 means unlimited
	Err         error // the error of the first failed write
}

// New returns a writer to w.
func New(w io.Writer) *Writer {
	t := &Writer{W: w}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return t
	}
	t.Interactive = true
	t.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		t.Width = width
	}
	return t
}

// Write implements io.Writer. The text may be untrusted.
func (t *Writer) Write(p []byte) (int, error) {
	text := string(p)
	if t.Interactive {
		text = visible(text)
	}
	if _, err := io.WriteString(t.W, text); err != nil {
		if t.Err == nil {
			t.Err = fmt.Errorf("cannot write the result: %w", err)
		}
		return 0, err
	}
	return len(p), nil
}

// Printf writes formatted text, which may be untrusted.
func (t *Writer) Printf(format string, args ...any) { fmt.Fprintf(t, format, args...) }

// A Colour is a parameter of the terminal's SGR sequence.
type Colour string

// Colours.
const (
	Green  Colour = "32"
	Red    Colour = "31"
	Yellow Colour = "33"
	Bold   Colour = "1"
	Dim    Colour = "2"
)

// Paint writes a word in a colour.
func (t *Writer) Paint(c Colour, text string) {
	if !t.Colour {
		t.Printf("%s", text)
		return
	}
	fmt.Fprintf(t.W, "\x1b[%sm%s\x1b[0m", c, visible(text))
}

// visible escapes control characters and invisible characters as \u{…}, except for line breaks and
// tabs.
func visible(text string) string { return display.Visible(text, invisible) }

func invisible(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == unicode.ReplacementChar ||
		r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Variation_Selector, r)
}

// WriteJSON prints a value as indented JSON, without HTML escapes.
func WriteJSON(out *Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(value)
	return cmp.Or(out.Err, err)
}

// Indent inserts prefix at the start of every line of text.
func Indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix)
}

// Fold wraps the lines of a text at the width of the terminal less margin. Lines that begin with
// white space are not wrapped.
func (t *Writer) Fold(text string, margin int) string {
	if t.Width <= margin {
		return text
	}
	lines := strings.Split(visible(text), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			lines[i] = Wrap(line, t.Width-margin)
		}
	}
	return strings.Join(lines, "\n")
}

// Wrap breaks a line at spaces so that no part is wider than width, except for longer words.
func Wrap(line string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(line, " ") {
		wide := Columns(word)
		switch {
		case i == 0:
		case column+1+wide > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += wide
	}
	return b.String()
}

// Say writes sentences, wrapped at the width of the terminal.
func (t *Writer) Say(format string, args ...any) {
	t.Printf("%s\n", t.Fold(fmt.Sprintf(format, args...), 0))
}

// Labelled writes wrapped sentences after a coloured label.
func (t *Writer) Labelled(c Colour, label, text string) {
	first, rest, more := strings.Cut(t.Fold(label+text, 0), "\n")
	t.Paint(c, label)
	t.Printf("%s\n", strings.TrimPrefix(first, label))
	if more {
		t.Printf("%s\n", rest)
	}
}

// Failure writes the details of a failure, indented: the last lines of a program's stderr and a hint.
// Both may be empty.
func (t *Writer) Failure(indent, stderr, hint string) {
	if stderr != "" {
		t.Printf("%slast lines of its stderr:\n%s\n", indent, Indent(stderr, indent+"  "))
	}
	if hint != "" {
		t.Printf("%s\n", Indent(t.Fold("hint: "+hint, len(indent)), indent))
	}
}

// ClearLine clears the current line.
func (t *Writer) ClearLine() { io.WriteString(t.W, "\r\x1b[K") }

// Heading writes a heading.
func (t *Writer) Heading(text string) {
	t.Paint(Bold, text)
	t.Printf("\n")
}
