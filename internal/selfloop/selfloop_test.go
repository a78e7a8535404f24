package selfloop

import (
	"strings"
	"testing"
)

// enter calls Enter like a process that the last run has started as entry.
func enter(t *testing.T, above Chain, entry, config, digest string) (Chain, error) {
	t.Helper()
	_, value, _ := strings.Cut(above.Env(entry, nil), "=")
	t.Setenv(Variable, value)
	return Enter(config, digest)
}

func TestEnter(t *testing.T) {
	a, err := enter(t, nil, "", "/a.json", "da")
	if err != nil {
		t.Fatal(err)
	}
	b, err := enter(t, a, "to-b", "/b.json", "db")
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string][2]string{"the path": {"/a.json", "new"}, "the digest": {"/dev/fd/63", "da"}} {
		_, err = enter(t, b, "to-a", again[0], again[1])
		want := `the config reaches itself: /a.json starts "to-b", which is /b.json starts "to-a", which is ` + again[0] + `; take "to-a" out of /b.json`
		if err == nil || err.Error() != want {
			t.Errorf("by %s: got %v, want %s", name, err, want)
		}
	}
	c, err := enter(t, b, "to-c", "/c.json", "dc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enter(t, c, "to-d", "/d.json", "dd"); err == nil || !strings.Contains(err.Error(), "nested 4 deep") {
		t.Errorf("got %v", err)
	}
}

func TestRefuse(t *testing.T) {
	same := func(a, b string) bool { return a == b }
	names := []string{"/b.json", "/c.json"}
	a := Chain{{Config: "/a.json", Digest: "da"}}
	_, value, _ := strings.Cut(a.Env("to-b", names), "=")
	t.Setenv(Variable, value)
	above := Above()
	for config, want := range map[string]string{
		"/a.json": "with a config that is served above",
		"/c.json": "with a config that /a.json above names too",
		"/d.json": "",
	} {
		if got := above.Refuse(config, same); got != want {
			t.Errorf("%s: got %q, want %q", config, got, want)
		}
	}
	if got := Chain(nil).Refuse("/a.json", same); got != "" {
		t.Errorf("with nothing above: got %q", got)
	}
	if got := append(above, Run{Config: "/d.json"}).Refuse("/e.json", same); got != "nested 4 deep" {
		t.Errorf("the fourth: got %q", got)
	}
	if many := a.Env("x", make([]string, 10*maxNames)); len(many) > 10*maxNames {
		t.Errorf("%d bytes of names", len(many))
	}
}

// A value that dynmcp did not write is ignored.
func TestEnterIgnoresOthers(t *testing.T) {
	for _, value := range []string{"", "x", "7", `[{"config":1}]`, `{}`} {
		t.Setenv(Variable, value)
		if chain, err := Enter("/a.json", "da"); err != nil || len(chain) != 1 {
			t.Errorf("%q: got %v, %v", value, chain, err)
		}
	}
}
