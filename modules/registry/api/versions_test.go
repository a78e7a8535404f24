package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/registry/api"
)

func TestCompare(t *testing.T) {
	order := "0.9 1.0.dev1 1.0a1 1.0-beta.2 1.0rc1 1.0.0 1.0.post1 1.0.1 1.2 1.10.0-rc.1 1.10 2025.1.2 2025.11.0"
	all := strings.Fields(order)
	for i, a := range all {
		for j, b := range all {
			if got := api.Compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s, %s: got %d", a, b, got)
			}
		}
	}
	for _, same := range [][2]string{{"1.0", "1.0.0"}, {"v1.2.3", "1.2.3"}, {"1.0.0+a", "1.0.0+b"}, {"1.0.0-RC1", "1.0.0-rc.1"}} {
		if api.Compare(same[0], same[1]) != 0 {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
}

func TestUpgrade(t *testing.T) {
	more := `"environmentVariables":[{"name":"A","isRequired":true}]`
	for name, c := range map[string]struct{ old, now, args, want string }{
		"npm":      {pkg("npm", "x", "1.0.0"), pkg("npm", "x", "1.1.0"), "-y x@1.0.0 a", "-y x@1.1.0 a"},
		"oci":      {pkg("oci", "a/b:1", ""), pkg("oci", "a/b:2", ""), "run -i --rm a/b:1", "run -i --rm a/b:2"},
		"remote":   {`"remotes":[{"type":"sse","url":"https://x.example/"}]`, `"remotes":[{"type":"sse","url":"https://x.example/"}]`, "", ""},
		"moved":    {`"remotes":[{"type":"sse","url":"https://x.example/"}]`, `"remotes":[{"type":"sse","url":"https://y.example/"}]`, "", "has other packages"},
		"another":  {pkg("npm", "x", "1.0.0"), pkg("npm", "evil", "1.1.0"), "-y x@1.0.0", "has other packages"},
		"a hint":   {pkg("npm", "x", "1.0.0"), pkg("npm", "x", "1.1.0", `"runtimeHint":"sh"`), "-y x@1.0.0", "has other packages"},
		"an input": {pkg("npm", "x", "1.0.0"), pkg("npm", "x", "1.1.0", more), "-y x@1.0.0", "has other packages"},
		"a range":  {pkg("npm", "x", "1.0.0"), pkg("npm", "x", ">=1.1.0"), "-y x@1.0.0", "has other packages"},
		"changed":  {pkg("npm", "x", "1.0.0"), pkg("npm", "x", "1.1.0"), "-y x@0.9.0", "has other packages"},
	} {
		t.Run(name, func(t *testing.T) {
			r := mcptest.ServeRegistry(t, serverJSON("io.example/x", "1.0.0", "X.", c.old), serverJSON("io.example/x", "1.1.0", "X.", c.now))
			client := &api.Client{Address: r.URL}
			old, err1 := client.Get(t.Context(), "io.example/x", "1.0.0")
			now, err2 := client.Get(t.Context(), "io.example/x", "")
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			args, err := old.Upgrade(now, strings.Fields(c.args))
			got := strings.Join(args, " ")
			if err != nil {
				got = fmt.Sprint(err)
			}
			if got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
