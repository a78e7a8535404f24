package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The tables in docs/scale.md that do not depend on the machine are up to date.
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

// writeTable replaces one table and changes nothing else.
func TestTablesAreWritten(t *testing.T) {
	text, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "scale.md")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	placement(&table)
	for _, step := range []struct{ name, table, want string }{
		{"placement", "another table\n\n", strings.Replace(string(text), strings.TrimRight(table.String(), "\n"), "another table", 1)},
		{"failover", "which the document has not", strings.Replace(string(text), strings.TrimRight(table.String(), "\n"), "another table", 1)},
		{"placement", table.String(), string(text)},
	} {
		if err := writeTable(file, step.name, step.table); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != step.want {
			t.Errorf("%s: %v, got\n%s", step.name, err, got)
		}
	}
}

// The defaults of the model are the measurements in docs/scale.md.
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

// growth measures all dimensions, here at their two least sizes.
func TestGrowth(t *testing.T) {
	t.Chdir(".") // growth changes to the root
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
