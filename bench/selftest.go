package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
)

// slowCall reads each argument of a call, as a release did without notice of the benchmarks.
var slowCall = sabotage.Fault{
	Name:  "every text of the arguments is decoded",
	Edits: []sabotage.Edit{{File: "catalog/input/schema.go", Old: "f.outline.Spans(value) {", New: "f.outline.Spans(value) {\n			_, _ = wire.Text(at.In(value))"}},
}

// selftest measures a build with slowCall beside this one, which must be said to be faster on pipes
// and for hosts over HTTP.
func (b binaries) selftest(rounds int) error {
	program, err := slowCall.Build(filepath.Join(b.dir, "slow"))
	if err != nil {
		return err
	}
	b.also = []variant{{name: before, argv: []string{b.dynmcp}}}
	b.dynmcp = program
	b.few = true
	found := []string{"10 KB both ways, 64 in flight", "gateway to stdio, 10 KB both ways, 64 in flight"}
	if err := calling(b, oneOf(found...), rounds); err != nil {
		return err
	}
	b.changes.print("the build without the fault")
	for _, in := range found {
		if !slices.ContainsFunc(b.changes.slower, func(change string) bool { return strings.HasPrefix(change, in+": ") }) {
			return fmt.Errorf("selftest: %s: nothing became slower with the fault: %s", in, slowCall.Name)
		}
	}
	fmt.Println("found: " + slowCall.Name)
	return nil
}
