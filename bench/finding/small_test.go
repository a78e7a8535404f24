package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
)

// rankerFaults would make searches find less.
var rankerFaults = []sabotage.Fault{
	{Name: "names of tools count little", Edits: []sabotage.Edit{{File: "catalog/search/search.go", Old: "inName: 2.5", New: "inName: 0.1"}}},
	{Name: "each word tells as much", Edits: []sabotage.Edit{{File: "catalog/search/search.go", Old: "math.Log(1 + (tools-n+0.5)/(n+0.5))", New: "math.Log(2 + 0*(tools-n))"}}},
	{Name: "no words mean the same", Edits: []sabotage.Edit{{File: "catalog/search/search.go", Old: "alike      = 0.4", New: "alike      = 0.0"}}},
	{Name: "stop words count", Edits: []sabotage.Edit{{File: "catalog/search/search.go", Old: "common     = 0.5", New: "common     = 3.0"}}},
	{Name: "arguments are not searched", Edits: []sabotage.Edit{{File: "catalog/search/index.go", Old: "		in.addSchema(i, d.Input, 0)\n", New: ""}}},
	{Name: "words are not stemmed", Edits: []sabotage.Edit{{File: "catalog/search/words.go", Old: "return porterstemmer.StemString(w)", New: "return w + porterstemmer.StemString(w)[:0]"}}},
	{Name: "opposites win", Edits: []sabotage.Edit{{File: "catalog/search/sides.go", Old: "opposite = 0.7", New: "opposite = 1.3"}}},
	{Name: "servers are not named", Edits: []sabotage.Edit{{File: "catalog/search/sides.go", Old: "named    = 2.0", New: "named    = 0.0"}}},
	{Name: "two words are not one", Edits: []sabotage.Edit{{File: "catalog/search/search.go", Old: "	if len(asked) <= oneThing {\n		for _, w := range compounds", New: "	if len(asked) < 0 {\n		for _, w := range compounds"}}},
	{Name: "the first result is lost", Edits: []sabotage.Edit{{File: "catalog/search/search.go", Old: "	return q.fit.best(limit)\n", New: "	found, more = q.fit.best(limit)\n	return found[min(1, len(found)):], more\n"}}},
}

// The faults edit source files, which may have changed.
func TestFaultsFitTheirFiles(t *testing.T) {
	for _, f := range faults {
		if _, err := f.Apply("../.."); err != nil {
			t.Error(err)
		}
	}
}

// The labelled set in the repository notices rankers with faults.
func TestSmallSetFindsFaults(t *testing.T) {
	if err := programs.EnterRoot(); err != nil {
		t.Fatal(err)
	}
	ranks := func(overlay string) ([]byte, error) {
		return exec.Command("go", "test", "-overlay", overlay, "-run", "^TestSmallSet$", "./catalog/search").CombinedOutput()
	}
	for _, f := range append(rankerFaults, sabotage.Fault{Name: "none"}) {
		t.Run(f.Name, func(t *testing.T) {
			overlay, err := f.Overlay(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			out, err := ranks(overlay)
			if found := strings.Contains(string(out), "--- FAIL: TestSmallSet"); found == (f.Edits == nil) || !found && err != nil {
				t.Errorf("found: %t, %v\n%s", found, err, out)
			}
		})
	}
}
