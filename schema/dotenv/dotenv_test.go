package dotenv

import "testing"

// Quotes are removed, comments and blank lines skipped.
func TestSyntax(t *testing.T) {
	vars, err := Parse(".env", []byte("\xef\xbb\xbf# comment\n\nA=\"two words\"\nB='$A'\r\nexport C=plain # why\nD=\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"A": "two words", "B": "$A", "C": "plain", "D": ""} {
		if got, ok := vars[name]; !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, ok, want)
		}
	}
}

// Any added value is read back unchanged.
func TestAdd(t *testing.T) {
	add := map[string]string{}
	for name, value := range map[string]string{
		"PLAIN": "word", "SPACES": " two  words ", "QUOTES": `"double" and 'single'`, "DOLLAR": "$A ${A} $(a)", "HASH": "a #b",
		"BACKSLASH": `a\nb\`, "LINES": "-----BEGIN-----\na\n-----END-----\n", "EQUALS": "a==", "EMPTY": "", "JSON": `{"a": "b"}`, "UNICODE": "größer",
	} {
		add[name] = value
		text, err := Add(".env", []byte("OLD=1"), add)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			delete(add, name)
			continue
		}
		got, err := Parse(".env", text)
		if err != nil || got[name] != value || got["OLD"] != "1" || len(got) != len(add)+1 {
			t.Errorf("%s: %q is read as %q, %v, from\n%s", name, value, got[name], err, text)
		}
	}
	for before, want := range map[string]string{"": "A=1\n", "B=2": "B=2\nA=1\n", "B=2\n": "B=2\nA=1\n"} {
		if got, err := Add(".env", []byte(before), map[string]string{"A": "1"}); err != nil || string(got) != want {
			t.Errorf("%q became %q, %v, want %q", before, got, err, want)
		}
	}
	if text, err := Add(".env", []byte("A=1\n"), map[string]string{"A": "2"}); err == nil {
		t.Errorf("a variable was changed: %s", text)
	}
}
