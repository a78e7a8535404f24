package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The tables of docs/scale.md that are the same on every machine are those that are
// computed.
func TestTablesOfTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	var tables bytes.Buffer
	placement(&tables)
	modelFlags(flag.NewFlagSet("", flag.ContinueOnError)).print(&tables)
	for line := range strings.Lines(tables.String()) {
		if !bytes.Contains(document, []byte(line)) {
			t.Errorf("docs/scale.md lacks %q", line)
		}
	}
}

// The model takes what the page says was measured: the server with its guard.
func TestModelTakesWhatWasMeasured(t *testing.T) {
	document, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	m := modelFlags(flag.NewFlagSet("", flag.ContinueOnError))
	for _, row := range []string{
		fmt.Sprintf("one that works %v |", m.base), fmt.Sprintf("a session that has called | %v KB |", m.session), fmt.Sprintf("| %v KB and a descriptor |", m.stream),
		fmt.Sprintf("in dynmcp | %v KB |\n| its guard | 855 KB |", m.server-855), fmt.Sprintf("from npm | %v MB |", m.process), fmt.Sprintf("on stdio | %v µs of a processor", m.call),
	} {
		if !bytes.Contains(document, []byte(row)) {
			t.Errorf("docs/scale.md lacks %q", row)
		}
	}
}
