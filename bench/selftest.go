package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
)

// slowCall reads each argument of a call, as a release did without notice of the benchmarks.
var slowCall = sabotage.Fault{
	Name:  "every text of the arguments is decoded",
	Edits: []sabotage.Edit{{File: "catalog/input/schema.go", Old: "		if p.takes&text != 0 ||", New: "		if _, ok := wire.Text(value); !ok || p.takes&text != 0 ||"}},
}

// selftest measures a build with slowCall beside this one, which must be said to be faster.
func (b binaries) selftest(rounds int) error {
	program, err := slowCall.Build(filepath.Join(b.dir, "slow"))
	if err != nil {
		return err
	}
	b.also = []variant{{name: before, argv: []string{b.dynmcp}}}
	b.dynmcp = program
	b.few = true
	if err := calling(b, oneOf("10 KB both ways, 64 in flight"), rounds); err != nil {
		return err
	}
	b.changes.print("the build without the fault")
	if len(b.changes.slower) == 0 {
		return errors.New("selftest: nothing became slower with the fault: " + slowCall.Name)
	}
	fmt.Println("found: " + slowCall.Name)
	return nil
}
