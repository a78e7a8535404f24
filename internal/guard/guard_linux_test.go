package guard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
)

// deadline bounds what takes milliseconds, or seconds under load.
const deadline = 2 * time.Minute

func init() {
	roles["stop the guard"] = stopTheGuard
	roles["run out of files"] = runOutOfFiles
	roles["have a child before"] = haveAChildBefore
}

// A hostile command is a script for sh. $0 is a number that no other test uses. Every process of
// the tree has it as an argument, so that the process is found even without an environment;
// sleep takes it as a time.
type hostile struct {
	name   string
	script string
	up     int // minimum number of processes when it is complete
}

var hostiles = []hostile{
	{"child", `sleep $0 & wait`, 2},
	{"orphan", `(sleep $0 &); exec sleep $0`, 2},
	{"daemon", `setsid sh -c 'sleep $0 &' $0; exec sleep $0`, 2},
	{"daemon without environment", `env -i "$(command -v setsid)" -f "$(command -v sleep)" $0; exec sleep $0`, 2},
	{"many daemons", `for i in 1 2 3 4 5 6 7 8 9 10; do setsid -f sleep $0; done; exec sleep $0`, 11},
	{"ignores signals", `trap "" TERM HUP INT; sleep $0 & wait`, 2},
	{"nohup", `nohup sleep $0 & wait`, 2},
	{"own process group", `timeout 600 sleep $0 & wait`, 3},
	{"no parent-death signal", `exec setpriv --pdeathsig clear sh -c 'sleep $0 & wait' $0`, 2},
	{"closed files", `exec <&- >&- 2>&-; sleep $0 & wait`, 2},
	{"stops itself", `sh -c 'kill -STOP $$; sleep $0' $0 & kill -STOP $$; sleep $0`, 2},
	{"stopped daemon", `setsid sh -c 'trap "" HUP; kill -STOP $$; sleep $0' $0 & exec sleep $0`, 2},
	{"sessions in sessions", `nest='n=$1; [ $n = 0 ] || setsid sh -c "$2" $0 $((n-1)) "$2"; sleep $0'; sh -c "$nest" $0 4 "$nest"`, 6},
	{"forks slowly", `i=0; while [ $((i+=1)) -lt 500 ]; do setsid -f sleep $0; sleep 0.1; done`, 3},
	{"hops from pid to pid", `hop='sleep 0.05; [ $1 = 0 ] || setsid -f sh -c "$2" $0 $(($1-1)) "$2"'; setsid -f sh -c "$hop" $0 1000 "$hop"; exec sleep $0`, 2},
	{"zombies", `sh -c 'true & setsid -f true & exec sleep $0' $0; sleep $0`, 2},
}

// start starts a hostile command and waits until it is complete.
func (h hostile) start(t *testing.T, args ...string) (tree *guard.Tree, marker string) {
	t.Helper()
	marker = newMarker(t)
	tree = start(t, append([]string{"sh", "-c", h.script, marker}, args...)...)
	eventually(t, h.name+" is up", func() bool { return len(marked(marker)) > h.up }) // with the guard
	return tree, marker
}

// newMarker returns a marker. Processes that have it when the test ends are killed.
func newMarker(t *testing.T) string {
	marker := fmt.Sprintf("600.%018d", rand.Int64N(1e18))
	t.Cleanup(func() {
		for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
			left := marked(marker)
			if len(left) == 0 {
				return
			}
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return marker
}

// marked returns the processes that have the marker among their arguments. A
// zombie has no arguments.
func marked(marker string) (pids []int) {
	names, _ := os.ReadDir("/proc")
	for _, name := range names {
		if pid, err := strconv.Atoi(name.Name()); err == nil {
			if line, _ := os.ReadFile("/proc/" + name.Name() + "/cmdline"); bytes.Contains(line, []byte(marker)) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// stat returns the fields of /proc/PID/stat from the third on.
func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

func state(pid int) string { return append(stat(pid), "gone")[0] }

// guardOf returns the guard of a command that has not been reaped.
func guardOf(tree *guard.Tree) int {
	if fields := stat(tree.Pid()); len(fields) > 1 {
		pid, _ := strconv.Atoi(fields[1])
		return pid
	}
	return 0
}

// signalGuard signals the guard of a tree. With SIGSTOP, it waits until the guard has stopped.
func signalGuard(t *testing.T, tree *guard.Tree, sig syscall.Signal) {
	t.Helper()
	pid := guardOf(tree)
	if pid <= 1 || pid == os.Getpid() {
		t.Fatalf("no guard, but %d", pid)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
	if sig == syscall.SIGSTOP {
		eventually(t, "the guard is stopped", func() bool { return state(pid) == "T" })
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// returns reports whether f returns in time, so that a test says what hangs.
func returns(f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(deadline):
		return false
	}
}

// finish waits for the end of a tree, and checks that nothing of it is left.
func finish(t *testing.T, name string, tree *guard.Tree, marker string) {
	t.Helper()
	if !returns(func() { _ = tree.Wait() }) {
		t.Errorf("%s: Wait does not return", name)
	} else {
		reap(t, name, tree, marker)
	}
}

// reap reaps a tree, and checks that nothing of it is left.
func reap(t *testing.T, name string, tree *guard.Tree, marker string) {
	t.Helper()
	if !returns(tree.Reap) {
		t.Errorf("%s: Reap does not return", name)
	} else if left := marked(marker); len(left) > 0 {
		t.Errorf("%s: %d processes are left", name, len(left))
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	tree := hostile{"tree", `trap "" TERM; sleep $0 & (sleep $0 &); setsid -f sleep $0; (trap - TERM; exec sleep $0) & wait; sleep $0`, 5}
	for name, end := range map[string]func(*guard.Tree){
		"killed":         (*guard.Tree).Kill,
		"terminated":     func(tree *guard.Tree) { tree.Terminate(); _ = syscall.Kill(tree.Pid(), syscall.SIGINT) },
		"command killed": func(tree *guard.Tree) { _ = syscall.Kill(tree.Pid(), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, marker := tree.start(t)
			end(tree)
			finish(t, name, tree, marker)
		})
	}
	t.Run("let go", func(t *testing.T) {
		t.Parallel()
		tree, marker := tree.start(t)
		reap(t, "let go", tree, marker)
	})
}

func TestACommandThatLeavesADaemon(t *testing.T) {
	t.Parallel()
	marker := newMarker(t)
	tree := start(t, "sh", "-c", "setsid -f sleep $0", marker)
	_ = tree.Wait()
	eventually(t, "the daemon is gone", func() bool { return len(marked(marker)) == 0 })
	tree.Reap()
}

func TestATreeOfManyGenerations(t *testing.T) {
	t.Parallel()
	const nest = `trap "" TERM; n=$1; [ $n = 0 ] || setsid sh -c "$2" $0 $((n-1)) "$2"; sleep $0`
	h := hostile{"nest", nest, 21}
	tree, marker := h.start(t, "20", nest)
	tree.Kill()
	finish(t, h.name, tree, marker)
}

// Other children of this process must not be affected.
func TestAGuardThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *guard.Tree){
		"KILL": func(t *testing.T, tree *guard.Tree) { signalGuard(t, tree, syscall.SIGKILL) },
		"SEGV": func(t *testing.T, tree *guard.Tree) { signalGuard(t, tree, syscall.SIGSEGV) },
		"ABRT": func(t *testing.T, tree *guard.Tree) { signalGuard(t, tree, syscall.SIGABRT) },
		"STOP": func(t *testing.T, tree *guard.Tree) { signalGuard(t, tree, syscall.SIGSTOP); tree.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			neighbour, marker := hostiles[2].start(t)
			plain := exec.Command("sleep", newMarker(t))
			if err := plain.Start(); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for _, h := range hostiles {
				tree, marker := h.start(t)
				end(t, tree)
				wg.Go(func() { finish(t, h.name, tree, marker) })
			}
			wg.Wait()

			if got := len(marked(marker)); got <= hostiles[2].up {
				t.Errorf("only %d processes are left of a neighbour", got)
			}
			neighbour.Kill()
			if err := neighbour.Wait(); err == nil || err.Error() != "it was ended by a signal: killed" {
				t.Errorf("a neighbour was lost: %v", err)
			}
			neighbour.Reap()
			_ = plain.Process.Signal(syscall.SIGUSR1)
			if err := plain.Wait(); err == nil || err.Error() != "signal: user defined signal 1" {
				t.Errorf("a child without a guard was lost: %v", err)
			}
		})
	}
}

// A service manager that ends all processes of a service ends the guard too, which then ends its
// tree as it would for us.
func TestASignalToTheGuardItself(t *testing.T) {
	t.Parallel()
	h := hostile{"asks for SIGTERM", `trap "exit 7" TERM; setsid -f sleep $0; while :; do sleep $0 & wait; done`, 3}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			tree, marker := h.start(t)
			signalGuard(t, tree, sig)
			var ended error
			if !returns(func() { ended = tree.Wait() }) {
				t.Fatal("the command continues")
			}
			if ended.Error() != "it exited with status 7" {
				t.Errorf("it was not asked to end: %v", ended)
			}
			reap(t, h.name, tree, marker)
		})
	}
}

// A command has the environment, signals and files that it would have without a guard.
func TestACommandInheritsNothingOfItsGuard(t *testing.T) {
	t.Parallel()
	said := func(start func(*exec.Cmd) (end func())) string {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		cmd := command(t, "sh", "-c", `tr "\0" "\n" </proc/$$/environ; grep ^Sig[BI] /proc/self/status; ls /proc/self/fd`)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=3", "EMPTY=", "TWICE=1", "TWICE=2", "LINES=a\nb"}
		cmd.Stdout = w
		end := start(cmd)
		w.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		end()
		return string(text)
	}
	plain := said(func(cmd *exec.Cmd) func() {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func() { _ = cmd.Wait() }
	})
	fence := newFence(t)
	extend(fence, time.Hour)
	for _, fence := range []*guard.Fence{nil, fence} {
		guarded := said(func(cmd *exec.Cmd) func() {
			tree, err := guard.Start(cmd, fence, nil)
			if err != nil {
				t.Fatal(err)
			}
			return func() { _ = tree.Wait(); tree.Reap() }
		})
		if guarded != plain || !strings.Contains(plain, "GOMAXPROCS=3\n") {
			t.Errorf("got %s\nwant %s", guarded, plain)
		}
	}
}

func TestAStoppedGuardThatIsLetGo(t *testing.T) {
	t.Parallel()
	tree, marker := hostiles[2].start(t)
	signalGuard(t, tree, syscall.SIGSTOP)
	reap(t, "stopped", tree, marker)
}

// The command kills or stops its guard when the guard sends it SIGTERM. The trap is set first:
// setsid is two processes for a moment, so three may exist before the loop.
func TestACommandThatEndsItsGuard(t *testing.T) {
	t.Parallel()
	h := hostile{"command", `trap "kill -$1 $PPID" TERM; setsid -f sleep $0; while :; do sleep $0 & wait; done`, 3}
	for _, sig := range []string{"KILL", "SEGV", "ABRT", "STOP"} {
		t.Run(sig, func(t *testing.T) {
			t.Parallel()
			tree, marker := h.start(t, sig)
			pid := guardOf(tree)
			tree.Terminate()
			if sig == "STOP" {
				eventually(t, "the guard is stopped", func() bool { return state(pid) == "T" })
				tree.Kill()
			}
			finish(t, sig, tree, marker)
		})
	}
}

// asRole starts this binary in a role, and returns it and its output.
func asRole(t *testing.T, role string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // held until Wait
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func TestWeAreKilledWhileAGuardIsStopped(t *testing.T) {
	marker := newMarker(t)
	cmd, out := asRole(t, "stop the guard", hostiles[2].script, marker)
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	eventually(t, "the tree is up", func() bool { return len(marked(marker)) > hostiles[2].up })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "nothing is left", func() bool { return len(marked(marker)) == 0 })
}

// shell returns a command for a role: a script and its arguments, without streams.
func shell(script string, args ...string) *exec.Cmd {
	sh, err := exec.LookPath("sh")
	if err != nil {
		panic(err)
	}
	return &exec.Cmd{Path: sh, Args: append([]string{"sh", "-c", script}, args...)}
}

// startShell starts what shell returns.
func startShell(script string, args ...string) *guard.Tree {
	tree, err := guard.Start(shell(script, args...), nil, nil)
	if err != nil {
		panic(err)
	}
	return tree
}

// stopTheGuard starts a tree, stops its guard, and waits for its own end.
func stopTheGuard() {
	tree := startShell(os.Args[1], os.Args[2])
	pid := guardOf(tree)
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for state(pid) != "T" {
		time.Sleep(time.Millisecond)
	}
	os.Stdout.WriteString(".")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAChildFromBeforeTheFirstGuard(t *testing.T) {
	t.Parallel()
	cmd, out := asRole(t, "have a child before", newMarker(t))
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || string(said) != "signal: user defined signal 1" {
		t.Errorf("%v: the child ended by %q", err, said)
	}
}

// haveAChildBefore has a child in a session of its own, then loses a guard.
func haveAChildBefore() {
	child := exec.Command("sleep", os.Args[1])
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		panic(err)
	}
	for began := time.Now(); time.Since(began) < 20*time.Millisecond; { // two ticks of the kernel's clock
		time.Sleep(time.Millisecond)
	}
	tree, err := guard.Start(&exec.Cmd{Path: child.Path, Args: child.Args}, nil, nil)
	if err != nil {
		panic(err)
	}
	_ = syscall.Kill(guardOf(tree), syscall.SIGKILL)
	_ = tree.Wait()
	tree.Reap()
	_ = child.Process.Signal(syscall.SIGUSR1)
	fmt.Print(child.Wait())
}

func TestAGuardThatCannotStart(t *testing.T) {
	cmd := command(t, "sh", "-c", "exit 0")
	cmd.Env = []string{"GOMEMLIMIT=nonsense"} // the Go runtime refuses to start
	if _, err := guard.Start(cmd, nil, nil); !errors.Is(err, guard.ErrResources) {
		t.Errorf("got %v, want %v", err, guard.ErrResources)
	}
}

func TestFilesRunOut(t *testing.T) {
	t.Parallel()
	cmd, out := asRole(t, "run out of files")
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || string(said) != "recovered" {
		t.Errorf("%v: %s", err, said)
	}
}

// runOutOfFiles starts a command with no, one, two … free file descriptors. Each start must
// succeed or fail with ErrResources, and the last must succeed.
func runOutOfFiles() {
	r, w, _ := os.Pipe() // the runtime's poller needs files of its own
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 40, Max: 40}); err != nil {
		panic(err)
	}
	cmd := shell("exit 0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	refused := 0
	for spare := range 20 {
		var held []int
		for {
			fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
			if err != nil {
				break
			}
			held = append(held, fd)
		}
		for range spare {
			_ = syscall.Close(held[0])
			held = held[1:]
		}
		tree, err := guard.Start(cmd, nil, nil)
		for _, fd := range held {
			_ = syscall.Close(fd)
		}
		switch {
		case err == nil:
			if err := tree.Wait(); err.Error() != "it exited with status 0" {
				panic(err)
			}
			tree.Reap()
		case !errors.Is(err, guard.ErrResources):
			panic(err)
		default:
			refused++
		}
		if err == nil && refused > 0 && spare == 19 {
			os.Stdout.WriteString("recovered")
		}
	}
}

func TestNothingStartsWithoutItsRestrictions(t *testing.T) {
	began := filepath.Join(t.TempDir(), "began")
	broken := errors.New("no restrictions")
	for name, err := range map[string]error{"with an error": broken, "with none": nil} {
		restrictions := &guard.Restrictions{Filter: func() ([]byte, error) { return nil, err }}
		tree, got := guard.Start(command(t, "touch", began), nil, restrictions)
		if tree != nil || got == nil || err != nil && !errors.Is(got, err) {
			t.Errorf("%s: got %v, %v", name, tree, got)
		}
	}
	if _, err := os.Stat(began); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the command was started: %v", err)
	}
}

// A file that a host left open in this process would bypass restrictions: under restrictions, a command
// inherits only its streams.
func TestNothingIsInheritedUnderRestrictions(t *testing.T) {
	const high = 1600
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
	if err = errors.Join(err, syscall.Dup3(null, high, 0)); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(null)
	defer syscall.Close(high)
	for name, restrictions := range map[string]*guard.Restrictions{"has": nil, "has not": {Filter: func() ([]byte, error) { return guard.NoFilter, nil }}} {
		tree, err := guard.Start(command(t, "test", "-e", fmt.Sprint("/proc/self/fd/", high)), nil, restrictions)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tree.Wait(), map[string]string{"has": "status 0", "has not": "status 1"}[name]; !strings.Contains(got.Error(), want) {
			t.Errorf("it %s the file: got %v", name, got)
		}
		tree.Reap()
	}
}
