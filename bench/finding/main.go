// Command finding measures whether a model finds the tools that it needs. It runs dynmcp with the
// catalogues of real servers, searches like a model that follows dynmcp's texts, and counts the
// answers in o200k tokens.
//
// Usage, from the root of the module:
//
//	go run -C bench ./finding                measures, and compares with the aims
//	go run -C bench ./finding -print 38      the texts of 10, 38 or 100 servers, and an answer
//	go run -C bench ./finding -program FILE  another build of dynmcp
//	go run -C bench ./finding -selftest      builds with faults, which must be found
//
// The catalogues are those of $DYNMCP_CORPUS or ../shared/corpus (bench/internal/corpus).
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		if err := corpus.Serve(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	selftest := flag.Bool("selftest", false, "measure builds with faults")
	show := flag.Int("print", 0, "print the texts of so many `servers`: 10, 38 or 100")
	program := flag.String("program", "", "measure this `file` instead of a build")
	flag.Parse()
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	if err := run(*program, *show, *selftest); err != nil {
		log.Fatal(err)
	}
}

func run(program string, show int, selftest bool) error {
	dir, err := programs.Build("./cmd/dynmcp")
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	program = cmp.Or(program, filepath.Join(dir, "dynmcp"))
	b, err := newBench(dir, program)
	if err != nil {
		return err
	}
	switch {
	case show > 0:
		return b.print(show)
	case selftest:
		return b.selftest()
	}
	return b.judge()
}

// judge measures everything and compares it with the aims.
func (b *bench) judge() error {
	if err := b.measure(); err != nil {
		return err
	}
	if !b.verdict.Close() {
		return errors.New("not all aims are reached")
	}
	return nil
}

// Faults that would make models find less, or read more.
var faults = []sabotage.Fault{
	{
		Name:  "definitions are not shown",
		Edits: []sabotage.Edit{{File: "catalog/results.go", Old: "	if s.Offset <= 0 {\n		r.define()\n", New: "	if s.Offset < 0 {\n		r.define()\n"}},
		Found: "tasks in two round trips",
	},
	{
		Name:  "only the last query counts",
		Edits: []sabotage.Edit{{File: "catalog/results.go", Old: "range s.Queries {\n", New: "range s.Queries[len(s.Queries)-1:] {\n"}},
		Found: "by steps",
	},
	{
		Name:  "names of tools count little",
		Edits: []sabotage.Edit{{File: "catalog/search/search.go", Old: "inName: 2.5", New: "inName: 0.1"}},
		Found: "bfcl",
	},
	{
		Name:  "descriptions are lists of names",
		Edits: []sabotage.Edit{{File: "catalog/proposal.go", Old: "	return describe.Text(s)\n", New: "	text := describe.Text(describe.Subject{})\n	for _, t := range s.Tools {\n		text += t.Name + \", \"\n	}\n	return text[:min(len(text), 160)]\n"}},
		Found: "by dynmcp",
	},
	{
		Name:  "instructions repeat the catalogue",
		Edits: []sabotage.Edit{{File: "catalog/instructions.go", Old: "	text := fmt.Sprintf(v.useTools(introText), names)\n", New: "	text := fmt.Sprintf(v.useTools(introText), names) + v.Describe(maxChars)\n"}},
		Found: "tokens at the start",
	},
	{
		Name:  "servers without room are not shown",
		Edits: []sabotage.Edit{{File: "catalog/describe.go", Old: "	if len(rest.parts) == 0 {\n", New: "	if len(rest.parts) < 1000 {\n"}},
		Found: "words to finding",
	},
}

// selftest measures a build with each fault, and fails unless each is found.
func (b *bench) selftest() error {
	var all verdict.Verdict
	for i, f := range faults {
		fmt.Printf("with a fault: %s\n", f.Name)
		program, err := f.Build(filepath.Join(b.dir, fmt.Sprint("fault", i)))
		if err != nil {
			return err
		}
		faulty, err := newBench(filepath.Dir(program), program)
		if err != nil {
			return err
		}
		if err := faulty.measure(); err != nil {
			return err
		}
		f.Judge(&all, &faulty.verdict)
	}
	if !all.Close() {
		return errors.New("a fault was not found")
	}
	return nil
}
