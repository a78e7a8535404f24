package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeTerminal returns a writer to a terminal, and its output.
func fakeTerminal(width int) (*Writer, *bytes.Buffer) {
	var b bytes.Buffer
	return &Writer{W: &b, Interactive: true, Colour: true, Width: width}, &b
}

func TestTerminalShowsWhatWouldActOnIt(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain, ü, 日本, 🎉":            "plain, ü, 日本, 🎉",
		"two\n\tlines":               "two\n\tlines",
		"\x1b[31mred\x1b[0m":         `\u{1b}[31mred\u{1b}[0m`,
		"\x1b]0;title\x07":           `\u{1b}]0;title\u{7}`,
		"back\rto the start\b":       `back\u{d}to the start\u{8}`,
		"\u202edrawkcab\u2066":       `\u{202e}drawkcab\u{2066}`,
		"zero\u200bwidth\ufeff":      `zero\u{200b}width\u{feff}`,
		"C1 \u009b31m":               `C1 \u{9b}31m`,
		"not \xff UTF-8, but \ufffd": `not \xff UTF-8, but \u{fffd}`,
		"tags \U000e0041":            `tags \u{e0041}`,
		"lines\u2028paragraphs":      `lines\u{2028}paragraphs`,
	} {
		s, b := fakeTerminal(0)
		s.Printf("%s", in)
		if b.String() != want {
			t.Errorf("%q is shown as %q, want %q", in, b, want)
		}
	}
}

func TestOnlyOurColoursReachATerminal(t *testing.T) {
	t.Parallel()
	s, b := fakeTerminal(0)
	s.Paint(Red, "FAIL\x1b[5m")
	if want := "\x1b[31mFAIL\\u{1b}[5m\x1b[0m"; b.String() != want {
		t.Errorf("got %q, want %q", b, want)
	}
	s.Colour = false
	b.Reset()
	s.Paint(Red, "FAIL")
	if b.String() != "FAIL" {
		t.Errorf("without colour: got %q", b)
	}
}

func TestElsewhereEveryByteGoesAsItIs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	s := New(&b)
	s.Printf("\x1b[31m\u202e\xff\r")
	s.Paint(Red, "FAIL")
	if want := "\x1b[31m\u202e\xff\rFAIL"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	list := Table{Header: []string{"NAME", "ENDPOINT", "AUTH"}, Shrink: 1, Rows: [][]string{
		{"files", "npx -y a-package-with-a-long-name", "n/a"},
		{"x", "two\nlines", "header"},
	}}
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "NAME   ENDPOINT                           AUTH\n" +
			"files  npx -y a-package-with-a-long-name  n/a\n" +
			"x      two lines                          header\n"},
		{30, "NAME   ENDPOINT         AUTH\n" +
			"files  npx -y a-pac...  n/a\n" +
			"x      two lines        header\n"},
		{1, "NAME   ENDPOINT  AUTH\n" +
			"files  npx -...  n/a\n" +
			"x      two l...  header\n"},
	} {
		s, b := fakeTerminal(c.width)
		s.Colour = false
		list.Write(s)
		if b.String() != c.want {
			t.Errorf("at width %d got\n%swant\n%s", c.width, b, c.want)
		}
	}
}

func TestSentencesAreWrappedBetweenWords(t *testing.T) {
	t.Parallel()
	const path = "/a/path/that/is/longer/than/the/window"
	s, _ := fakeTerminal(24)
	for in, want := range map[string]string{
		"short":                                "short",
		"the server does not know the session": "the server does not know\nthe session",
		"write --no-start to be quick-witted here":         "write --no-start to be\nquick-witted here",
		"not there: " + path:                               "not there:\n" + path,
		"日本語の名前はこれです 漢字":                                   "日本語の名前はこれです\n漢字",
		"run it:\n  sh -c 'a command that stays as it is'": "run it:\n  sh -c 'a command that stays as it is'",
	} {
		if got := s.Fold(in, 0); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	s.Width = 0
	if long := strings.Repeat("word ", 50); s.Fold(long, 4) != long {
		t.Error("a text is wrapped although the output is not a terminal")
	}
}

func TestTableWithoutRowsIsItsHeader(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	list := Table{Header: []string{"NAME", "AUTH"}}
	list.Write(New(&b))
	if b.String() != "NAME  AUTH\n" {
		t.Errorf("got %q", b.String())
	}
}

func TestTruncation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		max  int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "lo..."},
		{"longer", 4, "l..."},
		{"longer", 3, "lon"},
		{"longer", 0, ""},
		{"日本語の名前", 7, "日本..."},
	} {
		if got := Truncate(c.text, c.max); got != c.want {
			t.Errorf("Truncate(%q, %d): got %q, want %q", c.text, c.max, got, c.want)
		}
	}
}

func TestProgressIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := fakeTerminal(40)
		p := ShowProgress(s, "starting \x1ball")
		time.Sleep(progressDelay + time.Second)
		p.Say("starting something with a name that is too long")
		time.Sleep(time.Second)
		p.End()
		p.End()
		for _, want := range []string{"\r\x1b[Kstarting \\u{1b}all (1.0s)", "\r\x1b[Kstarting something with a nam... (2.2s)"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in %q", want, b)
			}
		}
		if !strings.HasSuffix(b.String(), "\r\x1b[K") {
			t.Errorf("a line is left: %q", b)
		}
	})
}

func TestShortWaitsShowNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := fakeTerminal(80)
		p := ShowProgress(s, "starting")
		time.Sleep(progressDelay / 2)
		p.End()
		if b.Len() > 0 {
			t.Errorf("got %q", b)
		}
	})
}
