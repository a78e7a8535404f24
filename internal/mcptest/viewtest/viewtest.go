// Package viewtest makes catalogues for tests of texts about them.
package viewtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/catalog"
)

// View returns a view of servers. Those with a listing are loaded.
func View(servers []catalog.Server, listings map[string]*catalog.Listing) *catalog.View {
	c := catalog.New()
	c.Declare(servers)
	for name, l := range listings {
		if !c.Put(name, c.Index(name, l)) {
			panic("not declared: " + name)
		}
	}
	return c.View()
}

// One returns a view of one server, s, that is loaded.
func One(l *catalog.Listing) *catalog.View {
	return View([]catalog.Server{{Name: "s"}}, map[string]*catalog.Listing{"s": l})
}

// Tools returns a listing of tools: pairs of name and description.
func Tools(pairs ...string) *catalog.Listing {
	l := &catalog.Listing{}
	for i := 0; i < len(pairs); i += 2 {
		l.Tools = append(l.Tools, fmt.Appendf(nil, `{"name":%q,"x-grease":1.0,"description":%q,"inputSchema":{"type":"object"}}`, pairs[i], pairs[i+1]))
	}
	return l
}

// Many returns a listing of n tools.
func Many(n int) *catalog.Listing {
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("tool_%04d", i), fmt.Sprintf("Does thing %d %s", i, strings.Repeat("at length ", 20)))
	}
	return Tools(pairs...)
}

// Raws returns a listing of tools as they are encoded.
func Raws(tools ...string) *catalog.Listing {
	l := &catalog.Listing{}
	for _, t := range tools {
		l.Tools = append(l.Tools, json.RawMessage(t))
	}
	return l
}

// Golden compares got with testdata/name.golden. If UPDATE is set, it writes the file first.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
