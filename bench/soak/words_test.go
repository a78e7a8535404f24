package main

import (
	"encoding/base64"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
)

// Canaries are found in all forms in which programs print them.
func TestCanariesAreFoundInEveryForm(t *testing.T) {
	all := newCanaries("ONE", "USERINFO", "OTHER")
	for _, c := range all {
		for _, line := range spoken(c.value) {
			if c.in("before "+line+" behind") < 0 {
				t.Errorf("%q is not found in %q", c.value, line)
			}
			for _, other := range all {
				if other.name != c.name && other.in(line) >= 0 {
					t.Errorf("%q is found in %q", other.value, line)
				}
			}
		}
		for _, part := range []string{c.value[:len(c.value)-1], c.value[1:]} {
			if c.in(part) < 0 {
				t.Errorf("%q is not found in %q", c.value, part)
			}
		}
		if c.in(strings.ToLower(c.value)) >= 0 || c.in("") >= 0 {
			t.Errorf("%q is found where it is not", c.value)
		}
	}
}

// Files are searched beside a socket, which a dynmcp that was killed has left.
func TestFilesBesideASocketAreSearched(t *testing.T) {
	t.Chdir(t.TempDir())
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	a := &canarySearch{canaries: newCanaries("ONE")}
	if err := os.WriteFile("text", []byte(a.canaries[0].value), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.files(".", ""); err != nil || a.hits != 1 {
		t.Errorf("got %d hits and %v, want 1", a.hits, err)
	}
}

// One word is found in base64 at any offset, since the other may be cut off.
func TestAWordIsFoundWhereverBase64PutsIt(t *testing.T) {
	word := newCanaries("ONE")[0].words[0]
	for before := range 3 {
		code := base64.StdEncoding.EncodeToString([]byte("xx"[:before] + word + "behind"))
		if !slices.ContainsFunc(codes(word), func(form string) bool { return strings.Contains(code, form) }) {
			t.Errorf("behind %d bytes: none of %q is in %q", before, codes(word), code)
		}
	}
}

func TestTheLedgerIsComparedNonceByNonce(t *testing.T) {
	text := "start 7\ncall echo 1\ncall echo 2\nexit crash-call\nstart 8\ncall echo 2\ncall echo 4\n"
	var got ledger.Account
	audit(&got, text, map[string]string{"1": "unknown", "2": "unknown", "3": "unknown", "4": "not_sent"})
	if got.Once != 2 || got.Again != 1 || got.Never != 1 || got.Denied != 1 || got.Failed["unknown"] != 3 {
		t.Errorf("got %+v, want 2 once, 1 again, 1 never, 1 denied, 3 unknown", got)
	}
}

func TestTheTallyTellsAnswersApart(t *testing.T) {
	tl := newTally(func(id int) bool { return id == 2 || id == 3 })
	for range 6 {
		tl.next()
	}
	failed := func(id, text string) answer {
		a := answer{ID: []byte(id), Line: text}
		a.Result.IsError = true
		return a
	}
	good := answer{ID: []byte("0")}
	good.Result.StructuredContent = []byte(nonce(0))
	other := answer{ID: []byte("1")}
	other.Result.StructuredContent = []byte(nonce(0))
	for _, a := range []answer{good, good, other, failed("2", "outcome unknown: it may have run"), failed("3", "it failed"), failed("4", "outcome done")} {
		if err := tl.take(a); err != nil {
			t.Fatal(err)
		}
	}
	if tl.twice != 1 || tl.misrouted != 1 || tl.unsaid != 1 || tl.wrong != 1 || tl.outcomes["unknown"] != 1 || tl.lost() != 1 {
		t.Errorf("got %+v, want one of each", tl)
	}
	if got, want := tl.missing(), "1 of 6 calls have no answer: 5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := tl.take(answer{ID: []byte("6")}); err == nil {
		t.Error("an answer to nothing is taken")
	}
}
