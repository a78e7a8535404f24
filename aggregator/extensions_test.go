package aggregator

import "testing"

// What is sealed for a session is opened in that session only, or in any session of the same user if each
// request is one.
func TestSealedForASession(t *testing.T) {
	t.Parallel()
	agg := withDocument(t, `{"mcp":{"a":{"command":"none"}}}`)
	open := func(user string, persistent bool) session {
		return agg.openSession(Identity{User: user, Persistent: persistent})
	}
	first, second := open("ann", true), open("ann", true)
	ann, again, bob := open("ann", false), open("ann", false), open("bob", false)
	for _, test := range []struct {
		name     string
		by, with session
		ok       bool
	}{
		{"the same session", first, first, true},
		{"another session of the user", first, second, false},
		{"a request of the user", first, ann, false},
		{"another request of the user", ann, again, true},
		{"a session of the user", ann, first, false},
		{"a request of another user", ann, bob, false},
	} {
		got, ok := test.with.Open("view", test.by.Seal("view", "server\nx"))
		if ok != test.ok || ok && got != "server\nx" {
			t.Errorf("%s: got %q, %v", test.name, got, ok)
		}
	}
	if _, ok := first.Open("state", first.Seal("view", "x")); ok {
		t.Error("what is sealed for one purpose was opened for another")
	}
}

// Of two servers with one extension the second adds what the first lacks, and changes nothing.
func TestWithMembers(t *testing.T) {
	t.Parallel()
	for _, test := range [][3]string{
		{`{"a":1}`, `{"a":2,"b":{"c":3}}`, `{"a":1,"b":{"c":3}}`},
		{`{}`, `{}`, `{}`},
		{`true`, `{"a":1}`, `true`},
		{`{"a":1}`, `2`, `{"a":1}`},
	} {
		if got := string(withMembers([]byte(test[0]), []byte(test[1]))); got != test[2] {
			t.Errorf("%s with %s: got %s, want %s", test[0], test[1], got, test[2])
		}
	}
}
