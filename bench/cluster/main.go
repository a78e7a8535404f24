//go:build linux

// Command cluster tests the claims of docs/cluster.md with processes on one machine: three replicas of
// dynmcp and three of nats-server, behind a round-robin balancer of TCP connections. Its steps:
//
//	load     A hundred hosts, half of each era, call servers that run once in the cluster, on
//	         every replica, and elsewhere over HTTP, while replicas and servers of NATS are
//	         killed, stopped, ended by SIGTERM, and with -namespaces cut off from each other.
//	         Each call has a nonce, which its server writes to a ledger before it answers;
//	         servers also write a heartbeat every 50 ms. Judged: every answer belongs to its
//	         call, every request is answered or breaks, no call ran twice, each failure
//	         reports correctly whether the call may have run, no server has two processes at
//	         a time, all nodes work again, and no process is left. A request may fail only
//	         if it was in flight at a replica with a fault: that of its connection, its
//	         session or its server; or, not sent, if its server could not be started
//	         elsewhere because of a fault of NATS or of another replica; or if NATS had no
//	         leader for the duration of a lease, as two replicas without faults log (with
//	         -busy, other failures are printed and not judged). At least once, a replica
//	         that runs servers is stopped for longer than the others wait for it.
//	rolling  Replicas are ended by SIGTERM and restarted, one after the other, twice, under
//	         load. Judged: no call fails.
//	nats     All servers of NATS are killed. Judged: calls to servers that run on every
//	         replica or elsewhere continue in their sessions, no call fails, /health reports
//	         degraded until NATS is back; then all servers answer.
//	ids      Session ids and request states that were changed, or belong to another user or
//	         cluster. Judged: 404 or -32602, and no server is reached.
//	mixed    Replicas of two versions, and the record of an older one with unknown fields.
//	         Judged: as in load, without faults. With -previous COMMIT the other version is
//	         dynmcp of that commit, and a cluster of it is upgraded to this version under
//	         load, one replica after the other, and downgraded again. Judged after each
//	         step: sessions, waiting calls, kept results, listings, logins and configs of
//	         each version work at the other, and no call fails. Printed: how long
//	         the servers of a killed replica are missing.
//	         Without -previous, the other version is this one under another name.
//	hop      How much longer a call takes through a replica that does not run the server,
//	         compared with the replica that does, and with a process that only passes bytes
//	         on. Printed, not judged.
//
// Usage, from the root of the module, on Linux:
//
//	go run -C bench ./cluster                                     20,000 calls, some minutes
//	go run -C bench ./cluster -only load -calls 1000000 -lasts 1h -namespaces
//	go run -C bench ./cluster -only mixed -previous v0.3.0        with the release before
//	go run -C bench ./cluster -selftest                           tests the judge with faulty programs
//	go run -C bench ./cluster -serve mcp.json                     a cluster until SIGTERM
//
// nats-server is built from its module, dynmcp from this one. -namespaces needs the right to create
// networks (root, or a user namespace); without it that part is NOT RUN, which is repeated at the end.
// Times are printed and never judged. A wrong count is printed after FAIL, and the exit status is 1.
// Read next: cluster.go, then hosts.go, faults.go and judge.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

// natsServer is the main package of nats-server.
const natsServer = "github.com/nats-io/nats-server/v2"

// A proof is a run of this command: its programs, flags and failures.
type proof struct {
	verdict.Verdict
	dir                          string
	dynmcp, upstream, natsServer string
	fake                         string
	previous                     string // a commit, "" if unset
	marker                       string // NAME=VALUE in the environment of all processes
	spaces, busy                 bool
	steady                       bool // see storm
	calls, hosts                 int
	lasts, every                 time.Duration
}

func main() {
	log.SetFlags(0)
	p := &proof{}
	flag.IntVar(&p.calls, "calls", 20000, "calls of the step load")
	flag.IntVar(&p.hosts, "hosts", 100, "hosts at once, half of each era")
	flag.DurationVar(&p.lasts, "lasts", time.Minute, "how long the calls of the step load take at least")
	flag.DurationVar(&p.every, "faults", 3*time.Second, "the time between two faults of the step load, on average; 0 is no faults")
	flag.BoolVar(&p.spaces, "namespaces", false, "give nodes networks of their own, which can be cut")
	flag.BoolVar(&p.busy, "busy", false, "print, and do not judge, what fails though nothing was done to it: the machine has other things to do")
	selftest := flag.Bool("selftest", false, "judge programs with faults in them, which must be found, each a step, and take no other `steps`")
	flag.StringVar(&p.previous, "previous", "", "the `commit` of the other version in the step mixed (default: none, the same under another name)")
	only := flag.String("only", "", "the `steps` to take, separated by commas (default all)")
	config := flag.String("serve", "", "do nothing but serve this `config` by a cluster, until SIGTERM")
	relayed := flag.String("relay", "", "an `address` to pass connections on to, for ourselves")
	dir := flag.String("dir", "", "a `directory` with the programs, for ourselves")
	flag.Parse()
	if *relayed != "" {
		if err := relay(*relayed); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	ok, err := p.run(*selftest, *only, *config, *dir)
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		os.Exit(1)
	}
}

func (p *proof) run(selftest bool, only, config, dir string) (ok bool, err error) {
	all := []verdict.Step{
		{Name: "load", Run: p.load},
		{Name: "rolling", Run: p.rolling},
		{Name: "nats", Run: p.withoutNATS},
		{Name: "ids", Run: p.ids},
		{Name: "mixed", Run: p.mixed},
		{Name: "hop", Run: p.hop},
	}
	if selftest {
		all = p.selftest()
	}
	steps, err := verdict.Choose(only, all)
	if err != nil {
		return false, err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "dynmcp-cluster"); err != nil {
			return false, err
		}
		if err := build(dir); err != nil {
			return false, errors.Join(err, os.RemoveAll(dir))
		}
		if p.previous != "" {
			if err := buildPrevious(dir, p.previous); err != nil {
				return false, errors.Join(err, os.RemoveAll(dir))
			}
		}
		defer func() {
			if ok && err == nil {
				err = os.RemoveAll(dir)
			} else {
				fmt.Println("what the nodes said is in", dir)
			}
		}()
		if p.spaces {
			if enter := namespaces(); enter != nil {
				return again(enter, dir)
			}
			p.Skip("cuts: networks may not be made here, neither with our rights nor in a user namespace, or there is no ip")
			p.spaces = false
		}
	}
	p.dir = dir
	p.dynmcp, p.upstream, p.natsServer, p.fake = filepath.Join(dir, "dynmcp"), filepath.Join(dir, "upstream"), filepath.Join(dir, "nats-server"), filepath.Join(dir, "fakemcp")
	// A number of seconds, so that it can be an argument of sleep.
	p.marker = fmt.Sprintf("PROOF=600.%018d", rand.Int64N(1e18))
	if config != "" {
		err := p.serve(config)
		return p.Close(), err
	}
	go p.interrupted()
	for _, st := range steps {
		began := time.Now()
		fmt.Printf("%s:\n", st.Name)
		if err := st.Run(); err != nil {
			p.Fail("%s: %v", st.Name, err)
		}
		fmt.Printf("  it took %v\n", time.Since(began).Round(time.Second))
	}
	return p.Close(), nil
}

// interrupted kills all processes of the run after a signal.
func (p *proof) interrupted() {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGTERM, os.Interrupt)
	<-interrupts
	for left := procs.Marked(p.marker); len(left) > 0; left = procs.Marked(p.marker) {
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it has our marker
		}
	}
	log.Fatal("interrupted; what the nodes said is in ", p.dir)
}

// again runs this program through the command enter, with the programs in dir.
func again(enter []string, dir string) (ok bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	cmd := exec.Command(enter[0], slices.Concat(enter[1:], []string{self, "-dir", dir}, os.Args[1:])...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGTERM, os.Interrupt)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	go func() {
		for sig := range interrupts {
			_ = cmd.Process.Signal(sig) // it may have ended
		}
	}()
	err = cmd.Wait()
	signal.Stop(interrupts)
	close(interrupts)
	var status *exec.ExitError
	if errors.As(err, &status) {
		return false, nil // it has printed why
	}
	return err == nil, err
}

func build(dir string) error {
	out := dir + string(filepath.Separator)
	if err := programs.Go(nil, "build", "-o", out, "./cmd/dynmcp", "./internal/mcptest/fakemcp"); err != nil {
		return err
	}
	return programs.Go(nil, "-C", "bench", "build", "-o", out, "./cluster/upstream", natsServer)
}
