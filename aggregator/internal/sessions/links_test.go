package sessions

import (
	"fmt"
	"strings"
	"testing"
)

// The oldest URIs are forgotten when there are too many.
func TestLinksAreBounded(t *testing.T) {
	for name, long := range map[string]string{"many": "x://", "long": "x://" + strings.Repeat("y", 1000)} {
		var l Links
		most := 0
		for n := range 10 * maxLinks {
			l.Add(fmt.Sprint(long, n), "up")
			most = max(most, l.kept())
		}
		last := 10*maxLinks - 1
		if l.Server(fmt.Sprint(long, 0)) != "" || l.Server(fmt.Sprint(long, last)) != "up" || l.Server(fmt.Sprint(long, last-50)) != "up" {
			t.Errorf("%s: the first is still there, or the last are gone", name)
		}
		if n := len(l.now) + len(l.old); n > 2*maxLinks || most > 2*(maxLinkBytes+maxLink) {
			t.Errorf("%s: %d with %d bytes are kept", name, n, most)
		}
		l.Forget()
		if l.kept() != 0 || l.Server(fmt.Sprint(long, last)) != "" {
			t.Errorf("%s: something is kept", name)
		}
	}
	var l Links
	if l.Add("x://"+strings.Repeat("y", maxLink), "up") {
		t.Error("a URI that long is data")
	}
	l.Add("x://1", "one")
	if !l.Add("x://1", "two") || l.Add("x://1", "two") || l.Server("x://1") != "two" {
		t.Error("the newest counts")
	}
}

// Users keep their links while they are among the last.
func TestLinksOfUsers(t *testing.T) {
	var u UserLinks
	u.Of("ann").Add("x://1", "up")
	for n := range 3 * maxUsers {
		u.Of(fmt.Sprint(n))
		if got := u.Of("ann").Server("x://1"); got != "up" {
			t.Fatalf("after %d: got %q", n, got)
		}
	}
	for n := range 3 * maxUsers {
		u.Of(fmt.Sprint("other", n))
	}
	if u.Of("ann").Server("x://1") != "" {
		t.Error("all are kept")
	}
}
