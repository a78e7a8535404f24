package toolglob

import (
	"regexp"
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	for _, test := range []struct{ pattern, matches, not string }{
		{"get_*", "get_ get_a get_a/b", "get xget_a"},
		{"get_?", "get_a get_/ get_ö", "get_ get_ab"},
		{"[a-c]x", "ax cx", "dx [a-c]x x"},
		{"[!a-c]x", "dx /x", "ax x"},
		{"[^a-c]x", "dx", "ax"},
		{`[\]\\d^-]`, `] \ d ^ -`, "5 a"},
		{"[a-c-e]", "b - e", "d"},
		{"{echo,pid,crash}", "echo pid crash", "{echo,pid,crash} ech"},
		{"{get,list}_{a,b*}", "get_a list_bcd", "get_c"},
		{"a{,b}", "a ab", "b"},
		{"a*{,_b}***", "a axx ax_b", "b"},
		{"{a,[,}]}", "a , }", "b"},
		{"{a,{b,c}d}", "a bd cd", "ad d"},
		{`\*`, "*", "x"},
		{`\{a,b\}`, "{a,b}", "a b"},
		{`\!a`, "!a", "a"},
		{`a\\b`, `a\b`, "ab"},
		{"a,b.c(]", "a,b.c(]", "a b axc"},
		{"**", "a a/b", ""},
	} {
		glob, err := Compile(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		for name := range strings.FieldsSeq(test.matches) {
			if !glob.MatchString(name) {
				t.Errorf("%s does not match %s", test.pattern, name)
			}
		}
		for name := range strings.FieldsSeq(test.not) {
			if glob.MatchString(name) {
				t.Errorf("%s matches %s", test.pattern, name)
			}
		}
	}
	for _, bad := range []string{"[a", "[", "a]b[", "[]", "[]a]", "[!]", "[^]", `[a\]`, "{a", "a}", "{a,{b}", `{a\}`, `a\`, "[z-a]", "[a-b"} {
		if _, err := Compile(bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// Compile accepts or refuses any pattern, without a panic. A pattern without special characters
// matches only itself.
func FuzzCompile(f *testing.F) {
	for _, seed := range [][2]string{{"[!a-z]?*[[]", "x/a["}, {"{a,[b}]}", "b"}, {"[a-", "a"}, {`{\,,a}*`, ","}, {"\xff", "x"}} {
		f.Add(seed[0], seed[1])
	}
	special := regexp.MustCompile(`[*?{}[\\\x{FFFD}]`)
	f.Fuzz(func(t *testing.T, pattern, name string) {
		glob, err := Compile(pattern)
		switch plain := !special.MatchString(pattern) && !special.MatchString(name); {
		case err != nil && plain:
			t.Errorf("%q is refused: %v", pattern, err)
		case err == nil && plain && glob.MatchString(name) != (pattern == name):
			t.Errorf("%q matches %q: %v", pattern, name, pattern != name)
		}
	})
}
