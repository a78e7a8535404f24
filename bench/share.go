package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

// sharingHosts have sharedServers servers each.
const sharingHosts, sharedServers = 5, 10

// sharing compares hosts that have a dynmcp each with hosts that share one run: what
// processes there are, what they weigh, and how long the second host waits for its
// first tools/list.
func sharing(bin binaries, _ int) error {
	fmt.Printf("\n%d hosts × %d servers\n  %-24s %10s %8s %8s %18s\n", sharingHosts, sharedServers, "", "processes", "RSS MB", "PSS MB", "second host, ms")
	for _, lazy := range []bool{false, true} {
		config, err := writeConfig(bin, sharedServers, lazy)
		if err != nil {
			return err
		}
		kind := "running"
		if lazy {
			kind = "lazy"
		}
		socket := filepath.Join(bin.dir, "shared-"+kind)
		for _, way := range []struct {
			name string
			argv []string
		}{
			{"each its own", onStdio(bin.dynmcp, config)},
			{"sharing", []string{bin.dynmcp, "connect", "--log-level", "error", "--idle", "1s", "--socket", socket, "-c", config}},
		} {
			if err := together(kind+", "+way.name, way.argv); err != nil {
				return fmt.Errorf("%s, %s: %w", kind, way.name, err)
			}
		}
	}
	return nil
}

// together starts a command for each host and prints what they have started when all
// have their tools.
func together(name string, argv []string) error {
	mark := fmt.Sprintf("DYNMCP_BENCH=%d", rand.Int64())
	key, value, _ := strings.Cut(mark, "=")
	if err := os.Setenv(key, value); err != nil { // processes are known by it
		return err
	}
	defer os.Unsetenv(key)
	var second time.Duration
	for i := range sharingHosts {
		began := time.Now()
		p, err := startProcess(argv)
		if err != nil {
			return err
		}
		defer p.stop()
		if _, err := p.ask("tools/list", `{}`); err != nil {
			return err
		}
		if i == 1 {
			second = time.Since(began)
		}
	}
	all := marked(mark)
	for since := time.Now(); time.Since(since) < time.Second; time.Sleep(50 * time.Millisecond) { // servers may start behind a list that was kept
		if now := marked(mark); now.count != all.count {
			since, all = time.Now(), now
		} else {
			all = now
		}
	}
	fmt.Printf("  %-24s %10d %8.0f %8.0f %18.0f\n", name, all.count, all.rss, all.pss, second.Seconds()*1e3)
	return nil
}

// A weight is what processes are together, in MB.
type weight struct {
	count    int
	rss, pss float64
}

// add weighs one process.
func (w *weight) add(pid int) {
	w.count++
	w.rss += float64(procs.Number(pid, "smaps_rollup", "Rss:")) / 1024
	w.pss += float64(procs.Number(pid, "smaps_rollup", "Pss:")) / 1024
}

// marked weighs the processes with a variable in their environment, but for this one.
func marked(mark string) (w weight) {
	for _, pid := range procs.Marked(mark) {
		if pid != os.Getpid() {
			w.add(pid)
		}
	}
	return w
}

// children weighs the processes that a process has started and that are still there.
func (p *process) children() (w weight) {
	for _, pid := range procs.Children()[p.cmd.Process.Pid] {
		w.add(pid)
	}
	return w
}
