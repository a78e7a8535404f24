package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
)

// selftest has steps judge programs that are known to be wrong.
func (s *soak) selftest() error {
	silence = 10 * time.Second
	for i, f := range faultsToFind() {
		began := time.Now()
		fmt.Printf("-- with a fault: %s\n", f.Name)
		program, err := f.Build(filepath.Join(s.dir, fmt.Sprint("fault-", i)))
		if err != nil {
			return err
		}
		t := &soak{dir: s.dir, dynmcp: program, fake: s.fake}
		run := func() error { return t.calls(1000) }
		switch f.Name {
		case sabotage.LeftProcess.Name:
			run = func() error { return t.kills(2, 2) }
		case sessionsStay.Name:
			run = func() error { return t.share(attacks(true), nil) }
		}
		if err := run(); err != nil {
			t.Fail("%v", err)
		}
		f.Judge(&s.Verdict, &t.Verdict)
		fmt.Printf("  it took %v; it said: %s\n", time.Since(began).Round(time.Second), strings.Join(t.Failures, "; "))
	}
	return nil
}

func faultsToFind() []sabotage.Fault {
	lost := sabotage.LostAnswer
	lost.Found = "calls without an answer"
	return []sabotage.Fault{lost, sabotage.LeftGoroutine, sabotage.LeftProcess, sessionsStay}
}

// sessionsStay is found when the attack is over.
var sessionsStay = sabotage.Fault{
	Name:  "sessions over HTTP that nobody uses never end",
	Edits: []sabotage.Edit{{File: "transports/gateway/sessions.go", Old: "if s.idleSince(then) && ", New: "if false && s.idleSince(then) && "}},
	Found: "sessions left",
}
