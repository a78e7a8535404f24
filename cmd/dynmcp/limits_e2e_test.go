//go:build e2e && linux

package main_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// peak is memory in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	return memory(t, pid) >> 10
}

// openFiles counts the descriptors of a process.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// There are more servers than descriptors. Calls of servers that do not fit say so each time
// and leave nothing behind. When other servers end there is room again, without a new config.
func TestTooFewDescriptors(t *testing.T) {
	t.Parallel()
	const many = 24
	var servers []entry
	for n := range many {
		servers = append(servers, deferred(t, fmt.Sprintf("s%d", n), "One of many", "-no", "resources,prompts"))
	}
	host := limited(t, "-n 64", "-c", mcptest.Config(t, document(servers)))
	greet(host)
	before := openFiles(t, host.Pid())
	// A start needs more descriptors for a moment than a running server holds, so whether one
	// more fits may change from try to try: up and down are the servers that answered and
	// failed last.
	down := make([]string, many)
	for n, s := range servers {
		down[n] = s.name
	}
	var up []string
	ask := func(name string) {
		m := use(host, name+"/echo", `{"n":1}`)
		if m.IsError() {
			contains(t, m.Text(), name+": ")
			contains(t, m.Text(), lackOfFiles...)
			return
		}
		up = append(up, name)
		down = slices.DeleteFunc(down, func(d string) bool { return d == name })
	}
	for _, s := range servers {
		ask(s.name)
	}
	for range 4 { // by calls alone, more often than its budget has starts
		ask(down[len(down)-1])
	}
	if len(up) < 4 || len(down) < 8 {
		t.Fatalf("up %q, down %q", up, down)
	}
	for range 10 {
		for _, name := range up {
			if m := use(host, name+"/echo", `{"n":2}`); m.Text() != `{"n":2}` {
				t.Fatalf("%s: got %s", name, m.Raw)
			}
		}
		if m := load(host, down[0]); !m.IsError() {
			up, down = append(up, down[0]), down[1:]
		}
	}
	for _, name := range up {
		use(host, name+"/crash", nil)
	}
	// A few more than before may have been opened late, by the runtime or the watch of
	// the config; a single server holds six.
	mcptest.Eventually(t, fmt.Sprintf("no more than %d descriptors are open", before+4), func() bool { return openFiles(t, host.Pid()) <= before+4 })
	for _, name := range []string{down[0], down[1], down[len(down)-1]} {
		if m := load(host, name); m.IsError() {
			t.Errorf("%s: got %s", name, m.Raw)
		}
		if m := use(host, name+"/echo", `{"n":3}`); m.Text() != `{"n":3}` {
			t.Errorf("%s: got %s", name, m.Raw)
		}
	}
}

var lackOfFiles = []string{"dynmcp is out of system resources", "too many open files", "outcome not_sent", "hint: raise the limit on open files"}

func TestTooFewDescriptorsForHTTP(t *testing.T) {
	t.Parallel()
	var servers []entry
	for n := range 12 {
		servers = append(servers, remote(t, fmt.Sprintf("s%d", n), "-no", "resources,prompts").with("description", "One of many"))
	}
	host := limited(t, "-n 20", "-c", mcptest.Config(t, document(servers)))
	greet(host)
	failed := map[string]int{}
	for range 5 {
		for _, s := range servers {
			if m := use(host, s.name+"/echo", `{"n":1}`); m.IsError() {
				failed[s.name]++
				contains(t, m.Text(), append(lackOfFiles, s.name+": ")...)
			}
		}
	}
	down := ""
	for _, s := range servers {
		if failed[s.name] > 3 { // its budget
			down = s.name
		} else {
			use(host, s.name+"/crash", nil)
		}
	}
	if down == "" || len(failed) == len(servers) {
		t.Fatalf("failed how often: %v", failed)
	}
	mcptest.Eventually(t, down+" answers", func() bool { return use(host, down+"/echo", `{"n":2}`).Text() == `{"n":2}` })
}

// Large calls that wait for their answers take about four times their size in memory at most.
func TestLargeCallsInFlight(t *testing.T) {
	t.Parallel()
	const servers = 4
	cases := []struct{ mb, inFlight, again, atMost int }{{1, 64, 16, 320}, {5, 16, 0, 320}}
	if mcptest.RaceEnabled { // what memory it takes says nothing then
		cases[0].inFlight, cases[0].again = 8, 0
		cases = cases[:1]
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%d MB", c.mb), func(t *testing.T) {
			gate := mcptest.NewGate(t)
			var entries []entry
			for n := range servers {
				entries = append(entries, fake(t, fmt.Sprintf("s%d", n), "-fault", "gate-call:"+gate.Path))
			}
			host := serve(t, entries...)
			large := fmt.Sprintf(`{"n":"%s"}`, strings.Repeat("x", c.mb*1_000_000))
			call := func(n int) *mcptest.Pending {
				return host.Go("tools/call", useParams(entries[n%servers].name+"/echo", large))
			}
			pending := make([]*mcptest.Pending, c.inFlight)
			for n := range pending {
				pending[n] = call(n)
			}
			for _, e := range entries {
				e.WaitFor("call echo", c.inFlight/servers)
			}
			gate.Open()
			for n := range c.inFlight + c.again {
				if m := pending[n].Wait(); !strings.Contains(m.Raw, large) {
					t.Errorf("call %d: got %.300s", n, m.Raw)
				}
				if n < c.again { // while the others are answered
					pending = append(pending, call(n))
				}
			}
			if mib := peak(t, host.Pid()); mib > c.atMost && !mcptest.RaceEnabled {
				t.Errorf("%d calls of %d MB took %d MiB, want %d at most", c.inFlight, c.mb, mib, c.atMost)
			} else {
				t.Logf("a peak of %d MiB", mib)
			}
		})
	}
}

// Ten thousand calls in flight are all answered, each with its own answer.
func TestTenThousandCallsAtOnce(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	alpha, beta := fake(t, "alpha", "-fault", "gate-call:"+gate.Path), fake(t, "beta")
	host := serve(t, alpha, beta)
	calls := make([]*mcptest.Pending, 10_000)
	for n := range calls {
		server := []string{"alpha", "beta"}[n%2]
		calls[n] = host.Go("tools/call", useParams(server+"/echo", fmt.Sprintf(`{"n":%d}`, n)))
	}
	alpha.WaitFor("call echo", len(calls)/2)
	gate.Open()
	answers := map[string]string{}
	open := map[string]bool{}
	for _, call := range calls {
		open[string(call.ID)] = true
	}
	host.WaitFor(func(m mcptest.Message) bool {
		if m.IsAnswer() {
			delete(open, string(m.ID))
		}
		return len(open) == 0
	})
	host.Call("ping", nil) // what would be answered twice is in
	for _, m := range host.Messages() {
		if m.IsAnswer() {
			if answers[string(m.ID)] != "" {
				t.Errorf("two answers to %s", m.ID)
			}
			answers[string(m.ID)] = m.Text()
		}
	}
	for n, call := range calls {
		if got, want := answers[string(call.ID)], fmt.Sprintf(`{"n":%d}`, n); got != want {
			t.Fatalf("call %d: got %.100s, want %s", n, got, want)
		}
	}
	if mib := peak(t, host.Pid()); mib > 512 && !mcptest.RaceEnabled {
		t.Errorf("it took %d MiB", mib)
	}
}

// idOf finds the id of an answer of ours at the beginning of its line.
var idOf = regexp.MustCompile(`"id":("i"|\d+)`)

// dynmcp stops reading a host that does not read. What waits for that host is bounded, and
// the servers wait too. Nothing is lost when it reads again.
func TestHostThatDoesNotReadIsNotRead(t *testing.T) {
	t.Parallel()
	const calls, size, atMost = 160, 1_000_000, 120
	alpha := fake(t, "alpha")
	cmd := exec.Command(mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{alpha})))
	cmd.Env = mcptest.Environ(t)
	theirIn, stdin, err1 := os.Pipe()
	stdout, theirOut, err2 := os.Pipe()
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	_, _ = theirIn.Close(), theirOut.Close()
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":`+hello+`}`)
	for n := range calls {
		mode := fmt.Sprintf(`{"mode":"huge:%d"}`, size)
		fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`+"\n", n, useParams("alpha/fault", mode))
	}
	alpha.WaitFor("call fault", calls)
	pings, rest := strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/x"}`+"\n", 100), ""
	for end := time.Now().Add(time.Minute); rest == ""; {
		_ = stdin.SetWriteDeadline(time.Now().Add(2 * time.Second))
		if n, err := io.WriteString(stdin, pings); err != nil {
			rest = pings[n:]
		} else if time.Now().After(end) {
			t.Fatal("it reads while nobody reads it")
		}
	}
	for last := 0; last != peak(t, cmd.Process.Pid); time.Sleep(time.Second) {
		last = peak(t, cmd.Process.Pid)
	}
	if mib := peak(t, cmd.Process.Pid); mib > atMost && !mcptest.RaceEnabled {
		t.Errorf("%d MiB while %d wait", mib, calls*size>>20)
	} else {
		t.Logf("a peak of %d MiB", mib)
	}
	_ = stdin.SetWriteDeadline(time.Time{})
	answered := map[string]bool{}
	whole := make(chan struct{})
	go func() {
		defer close(whole)
		for lines := bufio.NewReader(stdout); len(answered) < calls+1; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			id := idOf.Find(line[:min(len(line), 100)])
			if string(id) != `"id":"i"` && len(line) < size {
				t.Errorf("got %.300s", line)
			}
			answered[string(id)] = true
		}
	}()
	fmt.Fprint(stdin, rest)
	<-whole
	stdin.Close()
	if len(answered) != calls+1 {
		t.Errorf("%d of %d were answered", len(answered)-1, calls)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
