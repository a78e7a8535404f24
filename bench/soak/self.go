package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

// ownAtOnce is the number of dynmcp that a chain may have at once.
const ownAtOnce = 4

// selfWays are ways for a config to start itself. The script is its only server. $DYNMCP is
// the program and $DIR has the configs.
var selfWays = []struct{ name, script string }{
	{"sh -c exec", `exec sh -c 'exec "$0" "$@"' "$DYNMCP" -c "$DIR/a.json"`},
	{"a child of sh", `"$DYNMCP" -c "$DIR/a.json"; exit $?`},
	{"env", `exec env "$DYNMCP" --config="$DIR/a.json"`},
	{"another file name", `[ -x "$DIR/other" ] || cp "$DYNMCP" "$DIR/other" && exec "$DIR/other" -c "$DIR/a.json"`},
	{"dynmcp -- dynmcp -c", `exec "$DYNMCP" -- "$DYNMCP" -c "$DIR/a.json"`},
	{"A, B, A", `exec "$DYNMCP" -c "$DIR/b.json"`},
	{"ever new configs", `sed "s/\"way\"/\"way\",\"$$\"/" "$DIR/a.json" >"$DIR/$$.json" && exec "$DYNMCP" -c "$DIR/$$.json"`},
}

// self starts configs that start themselves, n times in each way. They run in a PID
// namespace, whose end also ends all processes in it.
func (s *soak) self(n int) error {
	enter := namespace()
	if enter == nil {
		s.Skip("self: a PID namespace may not be made here, neither with our rights nor in a user namespace")
		return nil
	}
	fmt.Printf("self: configs that reach themselves, %d × each way, ended by EOF and by SIGKILL in turn\n", n)
	fmt.Printf("  %-22s %16s %16s %8s\n", "", "dynmcp at once", "times the way", "left")
	for _, way := range selfWays {
		var most, taken, left int
		for i := range n {
			for _, end := range []syscall.Signal{0, syscall.SIGKILL} {
				c := &chain{soak: s, enter: enter, dir: filepath.Join(s.dir, fmt.Sprintf("self-%d", time.Now().UnixNano()))}
				if err := c.run(way.script, end); err != nil {
					return fmt.Errorf("%s, %d, ended by %s: %w", way.name, i, endName(end), err)
				}
				most, taken, left = max(most, c.most), taken+c.taken, left+c.left
			}
		}
		fmt.Printf("  %-22s %16d %16d %8d\n", way.name, most, taken, left)
		if most > ownAtOnce {
			s.Fail("%s: %d of dynmcp at a time, must be %d at most", way.name, most, ownAtOnce)
		}
		if most == 0 || taken == 0 {
			s.Fail("%s: no dynmcp was seen, or its server was never started", way.name)
		}
		s.Must("processes left", left, 0)
	}
	return nil
}

// namespace returns a command that runs another in a PID namespace, or nil if that is not
// permitted.
func namespace() []string {
	for _, rights := range [][]string{{}, {"--user", "--map-root-user"}} {
		enter := append(append([]string{"unshare"}, rights...), "--pid", "--fork", "--mount-proc", "--kill-child")
		if exec.Command(enter[0], append(enter[1:], "true")...).Run() == nil {
			return enter
		}
	}
	return nil
}

// A chain is a dynmcp whose config starts itself.
type chain struct {
	*soak
	enter []string
	dir   string
	host  *host
	init  int    // process 1 of the namespace, which only waits
	space string // name of the namespace in /proc

	most  int // greatest number of dynmcp at once, without guards
	taken int // number of runs of the script
	left  int // processes after the end
}

// run starts the chain, makes calls to its server, and ends it.
func (c *chain) run(script string, end syscall.Signal) (err error) {
	if err := c.write(script); err != nil {
		return err
	}
	c.host, err = c.launch(setting{
		// Process 1 outlives dynmcp. Otherwise the kernel would end all other processes.
		under: append(c.enter, "sh", "-c", `"$@"; exec sleep 600 <&- >&- 2>&-`, "sh"),
		path:  filepath.Join(c.dir, "a.json"),
	})
	if err != nil {
		return err
	}
	defer func() {
		_ = c.host.Cmd.Process.Kill() // also ends the namespace
		if said := c.host.Quit(); err != nil {
			os.Stderr.WriteString(said)
		}
	}()
	if err := c.find(); err != nil {
		return err
	}
	watched := c.watch()
	for i := range 3 {
		c.host.ask(fmt.Sprintf(`"load %d"`, i), "use_tool", use("loop/x", "{}"))
		if _, err := c.host.Await(fmt.Sprintf("load %d", i), hosts.NoOther); err != nil {
			watched()
			return err
		}
	}
	c.host.ask(`"never mind"`, "use_tool", use("loop/x", "{}"))
	pause(100 * time.Millisecond)
	if end == 0 {
		c.host.CloseStdin()
	} else {
		for _, pid := range childrenOf(c.init) {
			signal(pid, end)
		}
	}
	within(5*time.Second+patience, func() bool { return len(c.processes()) == 0 })
	watched()
	c.left = len(c.processes())
	c.taken = count(filepath.Join(c.dir, "taken"), "x")
	return nil
}

// write writes the configs. The script fails after 50 runs, so that an endless chain ends.
func (c *chain) write(script string) error {
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	way := filepath.Join(c.dir, "way")
	for name, text := range map[string]string{
		"way":    fmt.Sprintf("DIR=%q DYNMCP=%q\necho x >>\"$DIR/taken\"\n[ $(wc -l <\"$DIR/taken\") -lt 50 ] || exit 1\n%s\n", c.dir, c.dynmcp, script),
		"a.json": fmt.Sprintf(`{"mcp":{"loop":{"command":"sh","args":[%q,"way"]}},"startup_wait":"5s"}`, way),
		"b.json": fmt.Sprintf(`{"mcp":{"back":{"command":%q,"args":["-c",%q]}}}`, c.dynmcp, filepath.Join(c.dir, "a.json")),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// find finds the namespace and its first process.
func (c *chain) find() error {
	for _, pid := range childrenOf(c.host.Cmd.Process.Pid) {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		if err != nil {
			return err
		}
		c.init, c.space = pid, space
	}
	if own, _ := os.Readlink("/proc/self/ns/pid"); c.space == "" || c.space == own {
		return fmt.Errorf("it runs in the namespace %q and ours is %q", c.space, own)
	}
	return nil
}

// processes returns the processes in the namespace without the first and without zombies.
func (c *chain) processes() (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, link := range links {
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
		if pid == c.init {
			continue
		}
		line, _ := os.ReadFile(filepath.Dir(filepath.Dir(link)) + "/cmdline")
		if space, err := os.Readlink(link); err == nil && space == c.space && len(line) > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// watch keeps counting the dynmcp in the namespace until stop is called.
func (c *chain) watch() (stop func()) {
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			c.most = max(c.most, c.own())
			select {
			case <-over:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	return func() { close(over); watching.Wait() }
}

// own counts the running dynmcp without guards. A dynmcp whose parent is a dynmcp, but not
// a guard, is going to be a guard.
func (c *chain) own() int {
	n := 0
	for _, pid := range c.processes() {
		if c.isOwn(pid) && !isGuard(pid) {
			if parent := procs.Parent(pid); !c.isOwn(parent) || isGuard(parent) {
				n++
			}
		}
	}
	return n
}

// isOwn reports whether a process is dynmcp, by the file and not by its name.
func (c *chain) isOwn(pid int) bool {
	file, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	for _, path := range []string{c.dynmcp, filepath.Join(c.dir, "other")} {
		if own, err := os.Stat(path); err == nil && os.SameFile(file, own) {
			return true
		}
	}
	return false
}
