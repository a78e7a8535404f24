package display

import (
	"strings"
	"testing"
)

func TestUnitsCountsAsHostsDo(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "漢字": 2, "😀": 2, "a😀b": 4} {
		if got := Units(s); got != want {
			t.Errorf("Units(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestCutNeverSplitsACharacter(t *testing.T) {
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{
		{"short", 5, "short"},
		{"exactly ten", 11, "exactly ten"},
		{"one two three four", 12, "one two thr…"}, {"one two three four", 11, "one two…"},
		{"one two three, four", 15, "one two three…"},
		{"unbreakablewordthatislong", 10, "unbreakab…"},
		{"😀😀😀", 6, "😀😀😀"},
		{"😀😀😀", 5, "😀😀…"},
		{"😀😀😀", 4, "😀…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"", 0, ""},
	} {
		if got := Cut(tt.in, tt.max); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.max, got, tt.want)
		}
	}
}

// Variation selectors stay where they choose how a character looks.
func TestCleanKeepsVariationSelectors(t *testing.T) {
	for in, want := range map[string]string{
		"\u26a0\ufe0f a\n1\ufe0f\u20e3": "\u26a0\ufe0f a\n1\ufe0f\u20e3",
		"\u845b\U000e0100":              "\u845b\U000e0100",
		"\u26a0\ufe0f\ufe0f\ufe0e":      "\u26a0\ufe0f",
		"a\ufe0fb\U000e0101\ufe00":      "ab",
		"\u26a0\U000e0101":              "\u26a0",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFoldLeavesNothingInvisible(t *testing.T) {
	for in, want := range map[string]string{
		"  a \t\r\n b  ":                 "a b",
		"a\u2028b\u2029c\u0085d\u00a0e":  "a b c d e",
		"zero\u200bwidth\u2060\ufeff":    "zerowidth",
		"bidi \u202egnp.exe\u202c":       "bidi gnp.exe",
		"tags\U000e0041\U000e0042":       "tags",
		"esc\x1b[31mred\x07":             "esc[31mred",
		"va\ufe0fri\U000e0100ation":      "variation",
		"soft\u00adhyphen":               "softhyphen",
		"filler\u3164\u115f\uffa0":       "filler",
		"non\ufffecharacter\U0001ffff":   "noncharacter",
		"\u0645\u06cc\u200c\u062e\u0648": "\u0645\u06cc\u062e\u0648",
		"emoji 👩\u200d👧 e\u0301 stay 漢字": "emoji 👩👧 e\u0301 stay 漢字",
		"\u200b": "",
	} {
		if got := Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"Reads a file", "Reads a file"},
		{"Reads a file. Needs a path.", "Reads a file."},
		{"Reads files, e.g. a log. Then more.", "Reads files, e.g. a log."},
		{"Reads (i.e. opens) it! Now.", "Reads (i.e. opens) it!"},
		{"Version 1.2 of node.js reads. More", "Version 1.2 of node.js reads."},
		{"No. of items. rest goes on. Next", "No. of items. rest goes on."},
		{"wrapped\nin the middle. Next", "wrapped\nin the middle."},
		{"Lists issues\n\nText", "Lists issues"},
		{"🎯 Purpose\n\n1. Lists issues. More", "🎯 Purpose\n\n1. Lists issues."},
		{"Reads a file\n- one\n- two", "Reads a file"},
		{"Purpose:\n1. Reads a file. 2. Writes", "Purpose:\n1. Reads a file."},
		{"Reads a file\nArgs: path", "Reads a file\nArgs: path"},
		{"使用必应搜索。返回结果。", "使用必应搜索。"},
		{"\n\n  indented text. More", "indented text."},
		{"...", "..."},
		{"", ""},
		{"ends with dot.", "ends with dot."},
	} {
		if got := sentence(tt.in); got != tt.want {
			t.Errorf("sentence(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSentenceOfHugeTextIsBounded(t *testing.T) {
	if n := len(sentence(strings.Repeat("漢", 1<<20))); n > 4096 {
		t.Errorf("%d bytes", n)
	}
}

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{"0 tools": Plural(0, "tool"), "1 query": Plural(1, "query"), "4 queries": Plural(4, "query")} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
