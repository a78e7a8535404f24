package reference

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testVars = map[string]string{"A": "1", "B_2": "two", "EMPTY": "", "REF": "${A}", "_x": "low"}

func TestExpand(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"plain", "plain"},
		{"", ""},
		{"${A}", "1"},
		{"a${A}b", "a1b"},
		{"${A}${B_2} ${_x}", "1two low"},
		{"${EMPTY}", ""},
		{"${NONE:-d}", "d"},
		{"${EMPTY:-d}", "d"},
		{"${A:-d}", "1"},
		{"${NONE:-http://h:1/a:-b}", "http://h:1/a:-b"},
		{"${NONE:-}", ""},
		{"${NONE:-two words}", "two words"},
		{"${REF}", "${A}"},
		{"$${A}", "${A}"},
		{"$${A:-d}", "${A:-d}"},
		{"$${A} ${A} $${A}", "${A} 1 ${A}"},
		{"$$${A}", "$${A}"},
		{"${A", "${A"},
		{"${A} ${", "1 ${"},
		{"$${A", "$${A"},
		{"$", "$"},
		{"$A $$ 5$", "$A $$ 5$"},
		{"${a b}", "${a b}"},
		{"${1}", "${1}"},
		{"${}", "${}"},
		{"${A-d}", "${A-d}"},
		{"${env:A}", "${env:A}"},
		{"größer ${A}", "größer 1"},
	} {
		if got := Expand(test.in, testVars, nil); got.Text != test.want || got.Missing != nil {
			t.Errorf("Expand(%q): got %q, missing %v, want %q", test.in, got.Text, got.Missing, test.want)
		}
	}
}

// Every missing variable of a text is reported once, unless it has a default.
func TestExpandMissing(t *testing.T) {
	got := Expand("${X} ${Y:-d} ${A} ${Z} ${X} $${W}", testVars, nil)
	if diff := cmp.Diff([]string{"X", "Z"}, got.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// FuzzExpand compares Expand with the same rules as a regular expression, and checks that it
// reports references that stay.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"${A}", "$${A}", "${NONE:-x}", "${", "$$", "a${A}b$${C}${D", "${}}", "${A:-${B}}", "$$$${A}", "${EMPTY:-}"} {
		f.Add(seed)
	}
	reference := regexp.MustCompile(`\$?\$\{[^}]*\}`)
	live := regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}$`)
	f.Fuzz(func(t *testing.T, s string) {
		unexpanded, nested := false, false
		want := reference.ReplaceAllStringFunc(s, func(ref string) string {
			if strings.HasPrefix(ref, "$$") {
				return ref[1:]
			}
			if IsSecret(ref) { // not resolved here
				nested = nested || strings.Contains(ref[1:], "${")
				return ref
			}
			if userName(ref) != "" { // for ExpandUser
				return ref
			}
			parts := live.FindStringSubmatch(ref)
			if parts == nil {
				unexpanded = true
				return ref
			}
			nested = nested || strings.Contains(parts[2], "${")
			if value := testVars[parts[1]]; value != "" {
				return value
			}
			return strings.TrimPrefix(parts[2], ":-")
		})
		got := Expand(s, testVars, nil)
		if !nested && got.Text != want || got.Unexpanded != unexpanded || (got.Nested != "") != nested {
			t.Errorf("Expand(%q): got %+v, want %q, unexpanded %v, nested %v", s, got, want, unexpanded, nested)
		}
	})
}

// References to values of a user stay in Expand, whatever variables there are, and only they are
// replaced by ExpandUser. Values are not expanded again.
func TestExpandUser(t *testing.T) {
	got := Expand("Bearer ${user:TOKEN} ${A} ${user:-d} ${user:a b}", testVars, nil)
	if want := "Bearer ${user:TOKEN} 1 d ${user:a b}"; got.Text != want || !got.User || !got.Unexpanded {
		t.Errorf("got %+v, want %q", got, want)
	}
	text, missing := ExpandUser("${user:TOKEN}/${user:NONE}/${A}/$${x", map[string]string{"TOKEN": "${user:NONE}", "A": "no"})
	if diff := cmp.Diff([]string{"NONE"}, missing); text != "${user:NONE}//${A}/$${x" || diff != "" {
		t.Errorf("got %q, missing (-want +got):\n%s", text, diff)
	}
}
