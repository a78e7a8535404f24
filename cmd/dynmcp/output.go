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
//   - Lists fit the width of the terminal, and sentences are wrapped at it, between
//     words. Elsewhere nothing has a width. Results of tools, what servers print
//     and commands to be copied are never wrapped.

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
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
	bold   colour = "1"
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

// fold wraps the sentences of a text at the width of the terminal less a margin,
// between words. Lines that begin with white space stay as they are, as do words
// that are too long.
func (t *terminal) fold(text string, margin int) string {
	if t.width <= margin {
		return text
	}
	lines := strings.Split(visible(text), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			lines[i] = wrap(line, t.width-margin)
		}
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a line at spaces so that no part of it is wider than that, but for
// words that are.
func wrap(line string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(line, " ") {
		wide := columns(word)
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

// say writes sentences.
func (t *terminal) say(format string, args ...any) {
	t.printf("%s\n", t.fold(fmt.Sprintf(format, args...), 0))
}

// labelled writes sentences after a word in a colour that says what they are.
func (t *terminal) labelled(c colour, label, text string) {
	first, rest, more := strings.Cut(t.fold(label+text, 0), "\n")
	t.paint(c, label)
	t.printf("%s\n", strings.TrimPrefix(first, label))
	if more {
		t.printf("%s\n", rest)
	}
}

// clearLine clears the line that the cursor is in.
func (t *terminal) clearLine() { io.WriteString(t.w, "\r\x1b[K") }

// heading writes a line above what it names.
func (t *terminal) heading(text string) {
	t.paint(bold, text)
	t.printf("\n")
}

// confirmed asks on a terminal. Without one the answer is no.
func confirmed(cmd *cobra.Command, question string) bool {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !stderr(cmd).interactive {
		return false
	}
	stderr(cmd).printf("%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
