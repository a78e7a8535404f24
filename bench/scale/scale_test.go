package main

import (
	"bytes"
	"flag"
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
