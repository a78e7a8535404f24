package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The document has the table in the form in which it is made, whatever the numbers.
func TestTableOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), tableBegins)
	inside, _, ok := strings.Cut(rest, tableEnds)
	if !ok {
		t.Fatalf("ARCHITECTURE.md has no table between %q and %q", tableBegins, tableEnds)
	}
	made, some := newTable(), []sample{{p50: 1, rate: 1, cpu: 1}}
	made.starts = map[string][]sample{}
	for _, all := range [][]scenario{scenarios, httpScenarios, gatewayScenarios} {
		for _, s := range all {
			for _, prefix := range []string{"", "gateway to stdio, "} {
				if s.name = prefix + s.name; inTable(s) {
					made.note(s, map[string][]sample{"dynmcp": some, "pump": some})
				}
			}
		}
	}
	for _, k := range startKinds {
		made.starts[k.name] = some
	}
	numbers := regexp.MustCompile(`\| [0-9.]+ `)
	form := func(text string) string { return numbers.ReplaceAllString(text, "| # ") }
	if got, want := form(tableBegins+inside+tableEnds+"\n"), form(made.String()); got != want {
		t.Errorf("the table has another form\ngot:\n%s\nwant:\n%s", got, want)
	}
}
