package catalog

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/display"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// golden compares got with testdata/name.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// tool encodes a tool with a name, a description and an unknown member.
func tool(name, description string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":%s,"x-grease":1.0,"description":%s,"inputSchema":{"type":"object"}}`,
		display.Quote(name), display.Quote(description)))
}

// tools encodes pairs of name and description.
func tools(pairs ...string) *Listing {
	l := &Listing{}
	for i := 0; i < len(pairs); i += 2 {
		l.Tools = append(l.Tools, tool(pairs[i], pairs[i+1]))
	}
	return l
}

func raws(entries ...string) []json.RawMessage {
	var list []json.RawMessage
	for _, e := range entries {
		list = append(list, json.RawMessage(e))
	}
	return list
}

// put indexes and puts what a server listed.
func put(c *Catalog, name string, l *Listing) bool { return c.Put(name, c.Index(name, l)) }

// note declares the servers again, one of them with a note.
func note(c *Catalog, name, text string) {
	servers := slices.Clone(c.servers)
	for i := range servers {
		if servers[i].Name == name {
			servers[i].Note = text
		}
	}
	c.Declare(servers)
}

// loadedWith is a catalogue of the given servers and listings.
func loadedWith(servers []Server, listings map[string]*Listing) *Catalog {
	c := New()
	c.Declare(servers)
	for name, l := range listings {
		if !put(c, name, l) {
			panic("not declared: " + name)
		}
	}
	return c
}

// one is the view of one loaded server.
func one(s Server, l *Listing) *View { return views(s, l)[NoTasks] }

func views(s Server, l *Listing) *Views {
	return loadedWith([]Server{s}, map[string]*Listing{s.Name: l}).Views()
}

func exposed(v *View) []string {
	var names []string
	for _, t := range v.Tools() {
		names = append(names, t.Name)
	}
	return names
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
