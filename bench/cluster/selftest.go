//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

// faultsToFind returns the faults that load must find.
func faultsToFind() []sabotage.Fault {
	lost := sabotage.LostAnswer
	lost.Found = "unanswered requests"
	noFence := sabotage.Edit{File: "modules/cluster/replica/place.go", Old: ", Fence: r.fence}", New: "}"}
	const overlap = "processes of a server beside another one of its"
	return []sabotage.Fault{
		{Name: "guards do not end what a stopped replica runs", Edits: []sabotage.Edit{noFence}, Found: overlap},
		{Name: "a lost lease ends nothing", Edits: []sabotage.Edit{noFence,
			{File: "modules/cluster/replica/place.go", Old: "Lost: lease.Lost(), Moving: r.self.Leaving(where.ID)}", New: "Lost: make(chan struct{}), Moving: r.self.Leaving(where.ID)}"}}, Found: overlap},
		{Name: "a lease is taken from who holds it", Edits: []sabotage.Edit{
			{File: "modules/cluster/members/take.go", Old: "(bool, error) {\n	if l.broken {\n", New: "(bool, error) {\n	if r != nil {\n		return true, nil\n	}\n	if l.broken {\n"},
			{File: "modules/cluster/members/take.go", Old: "elsewhere := owner != nil && owner.ID != r.id", New: "elsewhere := owner != nil && r == nil"},
			{File: "modules/cluster/members/place.go", Old: "holder != nil && holder.ID != r.id && ", New: "holder != nil && r == nil && "},
			{File: "modules/cluster/members/place.go", Old: "	m, _ = Rendezvous(name, heard)\n", New: "	if self := r.view.member(r.id); self != nil {\n		return self.Member, false\n	}\n	m, _ = Rendezvous(name, heard)\n"},
		}, Found: overlap},
		{Name: "calls are sent twice", Edits: []sabotage.Edit{{File: "transports/upstream/lines.go", Old: "	params, n := call.pieces(id)\n",
			New: "	params, n := call.pieces(id)\n	if call.Method == \"tools/call\" {\n		_ = l.writer.SendRequest(maxQueuedRequests, id, call.Method, params[:n]...)\n	}\n"}}, Found: "calls that ran twice"},
		lost,
		sabotage.LeftProcess,
	}
}

// selftest returns a step for each faulty program, which load judges.
func (p *proof) selftest() (steps []verdict.Step) {
	for i, f := range faultsToFind() {
		steps = append(steps, verdict.Step{Name: f.Name, Run: func() error {
			return p.judges(f, filepath.Join(p.dir, fmt.Sprint("fault-", i)))
		}})
	}
	return steps
}

// judges runs load with a faulty program, built in dir.
func (p *proof) judges(f sabotage.Fault, dir string) error {
	bound = 40 * time.Second
	program, err := f.Build(dir)
	if err != nil {
		return err
	}
	q := *p
	q.Verdict.Failed, q.Verdict.Failures = false, nil
	q.dir, q.dynmcp = dir, program
	q.calls, q.hosts, q.lasts, q.every, q.spaces = 4000, 20, 40*time.Second, time.Second, false
	// Without NATS no other replica takes over the servers of a stopped one, and there is no overlap.
	q.steady = true
	if f.Name == sabotage.LostAnswer.Name {
		q.every = 0 // a fault of a node would end the call that waits for bound
	}
	if err := q.load(); err != nil {
		q.Fail("load: %v", err)
	}
	f.Judge(&p.Verdict, &q.Verdict)
	fmt.Printf("  failures: %s\n", strings.Join(q.Failures, "; "))
	return nil
}
