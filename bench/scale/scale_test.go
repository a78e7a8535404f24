package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
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

// Everything that grows is measured, at its least sizes here: dynmcp answers, and memory
// and time are numbers.
func TestGrowth(t *testing.T) {
	t.Chdir(".") // growth goes to the root
	for i := range dimensions {
		defer func(sizes []float64) { dimensions[i].sizes = sizes }(dimensions[i].sizes)
		dimensions[i].sizes = dimensions[i].sizes[:2]
	}
	var out bytes.Buffer
	if err := growth(&out, "", 1); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m): .* +\d+ +([\d.]+) +(\d+) +-?[\d.]+ +-?[\d.]+$`).FindAllStringSubmatch(out.String(), -1)
	if len(rows) != len(dimensions) {
		t.Errorf("%d of %d lines show what more costs:\n%s", len(rows), len(dimensions), &out)
	}
	for _, row := range rows {
		if row[1] == "0.00" || row[2] == "0" && runtime.GOOS == "linux" {
			t.Errorf("nothing was measured: %s", row[0])
		}
	}
}
