// Command soak tries for long what the tests try for a moment, on real
// processes, and prints what it counted:
//
//	kills    dynmcp is killed while hostile process trees run below it: what is left
//	calls    calls with a number each, a part of them to servers that misbehave:
//	         answers that are lost, come twice, or belong to another call; memory
//	ledger   a server that dies after it has done the work: what ran twice
//	hostile  one server of 20 floods: what the calls of the others take
//
// Usage, from the root of the module, on Linux:
//
//	go run ./bench/soak                                                 a minute
//	go run ./bench/soak -kills 1000 -calls 1000000 -deaths 10000        what a release needs
//
// The exit status is 1 if a count is not what it must be.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// A soak is where the programs are and what went wrong so far.
type soak struct {
	dir, dynmcp, fake string
	failed            bool
}

func main() {
	log.SetFlags(0)
	kills := flag.Int("kills", 40, "kills of each kind")
	atOnce := flag.Int("parallel", 8, "kills at a time")
	calls := flag.Int("calls", 20000, "calls under faults")
	deaths := flag.Int("deaths", 50, "calls whose server dies before it answers")
	others := flag.Int("others", 4000, "calls beside a hostile server")
	flag.Parse()
	s := &soak{}
	if err := s.build(); err != nil {
		log.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return s.kills(*kills, *atOnce) },
		func() error { return s.calls(*calls) },
		func() error { return s.deaths(*deaths) },
		func() error { return s.hostile(*others) },
	} {
		if err := step(); err != nil {
			fmt.Println("FAIL:", err)
			s.failed = true
		}
	}
	os.RemoveAll(s.dir)
	if s.failed {
		os.Exit(1)
	}
}

func (s *soak) build() error {
	dir, err := os.MkdirTemp("", "dynmcp-soak")
	if err != nil {
		return err
	}
	s.dir, s.dynmcp, s.fake = dir, filepath.Join(dir, "dynmcp"), filepath.Join(dir, "fakemcp")
	for path, pkg := range map[string]string{s.dynmcp: "dynmcp/cmd/dynmcp", s.fake: "dynmcp/internal/mcptest/fakemcp"} {
		if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

// must fails the soak unless a count is what it must be.
func (s *soak) must(what string, got, want int) {
	if got != want {
		s.failed = true
		fmt.Printf("  FAIL: %s: %d, must be %d\n", what, got, want)
	}
}
