package main

import (
	"fmt"
	"slices"
	"strings"
)

// The speed table of ARCHITECTURE.md stands between these.
const (
	tableBegins = "<!-- made by: go run -C bench . -table -->"
	tableEnds   = "<!-- end -->"
)

// tableWays are the ways of a call that the table has, as the names of scenarios begin.
var tableWays = []struct{ name, prefix string }{
	{"stdio → stdio", ""},
	{"stdio → HTTP", "HTTP, "},
	{"HTTP → stdio", "gateway to stdio, "},
}

var tableSizes = []string{"100 B", "10 KB", "1 MB"}

// A table is what was measured for the speed table: samples of dynmcp and of the pump by
// the names of scenarios.
type table struct {
	ours, pump, starts map[string][]sample
	foreign            []float64 // percent of the machine that others used
}

func newTable() *table { return &table{map[string][]sample{}, map[string][]sample{}, nil, nil} }

func (t *table) note(s scenario, results map[string][]sample) {
	t.ours[s.String()], t.pump[s.String()] = results["dynmcp"], results["pump"]
	for _, sample := range results["dynmcp"] {
		t.foreign = append(t.foreign, 100*sample.foreign)
	}
}

// inTable reports whether the table shows a scenario.
func inTable(s scenario) bool {
	for _, way := range tableWays {
		if slices.Contains(tableSizes, strings.TrimPrefix(s.name, way.prefix)) && strings.HasPrefix(s.name, way.prefix) {
			return true
		}
	}
	return false
}

// speedTable measures what the table shows, and prints it as it stands in the document.
func speedTable(bin binaries, rounds int) (err error) {
	bin.few = true
	if err := calling(bin, inTable, rounds); err != nil {
		return err
	}
	if bin.table.starts, err = startsOf(bin, rounds); err != nil {
		return err
	}
	fmt.Printf("\n%s", bin.table)
	if used := median(bin.table.foreign); used > 100*busy {
		fmt.Printf("others used %.0f %% of the machine: this is not for the document\n", used)
	}
	return nil
}

// String returns the table with its marks.
func (t *table) String() string {
	var b strings.Builder
	b.WriteString(tableBegins + "\n\n| host → server | call | p50 at 1, × pump | calls/s at 64, × pump | CPU at 64, µs | pump's | peak RSS, MB |\n|---|---|---|---|---|---|---|\n")
	for _, way := range tableWays {
		for _, size := range tableSizes {
			one, many := scenario{name: way.prefix + size, inFlight: 1}.String(), scenario{name: way.prefix + size, inFlight: 64}.String()
			fmt.Fprintf(&b, "| %s | %s | %.2f | %.2f | %.1f | %.1f | %.0f |\n", way.name, size, ratio(t.ours[one], t.pump[one], p50), ratio(t.ours[many], t.pump[many], rate),
				median(values(t.ours[many], cpu)), median(values(t.pump[many], cpu)), median(values(t.ours[many], peak)))
		}
	}
	b.WriteString("\n| start to `tools/list` | ms | RSS, MB |\n|---|---|---|\n")
	for _, k := range startKinds {
		fmt.Fprintf(&b, "| %s | %.1f | %.0f |\n", k.name, median(values(t.starts[k.name], milliseconds)), median(values(t.starts[k.name], rate)))
	}
	b.WriteString("\n" + tableEnds + "\n")
	return b.String()
}
