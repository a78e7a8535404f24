package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
)

// selftest runs steps with faulty programs, which they must find.
func (s *soak) selftest() error {
	hosts.Silence = 10 * time.Second
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
		case sessionsStay.Name, newestFirst.Name, leastFirst.Name:
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
	return []sabotage.Fault{lost, sabotage.LeftGoroutine, sabotage.LeftProcess, sessionsStay, newestFirst, leastFirst}
}

// sessionsStay is found after the attack.
var sessionsStay = sabotage.Fault{
	Name:  "sessions over HTTP that nobody uses never end",
	Edits: []sabotage.Edit{{File: "transports/gateway/sessions.go", Old: "if s.idleSince(then) && ", New: "if false && s.idleSince(then) && "}},
	Found: "sessions left",
}

// newestFirst affects newcomers, and leastFirst affects hosts whose answers are written.
var (
	newestFirst = sabotage.Fault{
		Name: "of too many connections the newest is closed",
		Edits: []sabotage.Edit{{File: "transports/gateway/conns.go", Old: "	var gone []*conn\n	t.mu.Lock()\n	for",
			New: "	var gone []*conn\n	t.mu.Lock()\n	if t.unauthenticated.Len()+t.authenticated >= t.most {\n		t.mu.Unlock()\n		nc.Close()\n		return c\n	}\n	for"}},
		Found: "newcomers were turned away",
	}
	leastFirst = sabotage.Fault{
		Name: "nobody has a share of what is held, and who holds the least is shed",
		Edits: []sabotage.Edit{
			// The attack fills half of the budget on any machine, and half is not shed.
			{File: "internal/membudget/membudget.go", Old: "	free, a := b.freeLocked(), b.of[who]", New: "	free, a := b.freeLocked()-b.max/2, b.of[who]"},
			{File: "internal/membudget/membudget.go", Old: "		if a == nil || 2*a.sheddable <= a.bytes", New: "		if true || a == nil || 2*a.sheddable <= a.bytes"},
			{File: "internal/membudget/membudget.go", Old: "		if a.bytes > largest && a.sheddable >= need {", New: "		if a.bytes < 1<<20 && (largest == 0 || a.bytes < largest) {"},
		},
		Found: "calls of good hosts", // failed, or were refused
	}
)
