package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard/child"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
)

func init() {
	before := descriptors()
	leftOver = func() error {
		if after := descriptors(); after > before+8 { // the poller, /dev/null and the like are opened once
			return fmt.Errorf("%d descriptors are open, there were %d", after, before)
		}
		if left, err := child.Children(); err != nil || len(left) > 0 {
			return fmt.Errorf("processes are left: %v, %v", left, err)
		}
		return nil
	}
}

func descriptors() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}

// warm returns the process that is kept after a script.
func warm(t *testing.T, p *script.Pool) (pid int, ended <-chan struct{}) {
	t.Helper()
	run(t, p, "return 1", echo)
	if pid, ended = p.Warm(); pid == 0 {
		t.Fatal("no child is kept")
	}
	return pid, ended
}

// The kernel reports the limits of the process, which a script cannot change.
func TestTheWallsAroundScripts(t *testing.T) {
	t.Setenv("A_SECRET", "for nobody")
	left := leftOpen(t)
	pid, _ := warm(t, newPool(t))
	read := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := read("environ"); got != "" {
		t.Errorf("its environment is %q", got)
	}
	status := strings.Join(strings.Fields(read("status")), " ")
	if want := "NoNewPrivs: 1 Seccomp: 2"; !strings.Contains(status, want) {
		t.Errorf("its status has no %q: %s", want, status)
	}
	limits := strings.Join(strings.Fields(read("limits")), " ")
	for _, want := range []string{"Max open files 0 0", "Max core file size 0 0", "Max file size 0 0", "Max data size 268435456 268435456"} {
		if strings.HasPrefix(want, "Max data") && mcptest.RaceEnabled {
			continue
		}
		if !strings.Contains(limits, want) {
			t.Errorf("its limits have no %q: %s", want, limits)
		}
	}
	if strings.Contains(limits, "Max cpu time unlimited") {
		t.Error("its processor time has no limit")
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		target, _ := os.Readlink(file)
		if slices.Contains(left, target) || !strings.HasPrefix(target, "pipe:") && target != os.DevNull && !strings.HasPrefix(target, "anon_inode:") {
			t.Errorf("it has %s open", target)
		}
	}
}

// leftOpen opens files that execve does not close, as a host may do, and returns their names.
func leftOpen(t *testing.T) (all []string) {
	t.Helper()
	const high = 1500
	var ends [2]int
	dir, err := syscall.Open(t.TempDir(), syscall.O_RDONLY, 0)
	if err = errors.Join(err, syscall.Pipe(ends[:]), syscall.Dup3(dir, high, 0)); err != nil {
		t.Fatal(err)
	}
	for _, fd := range []int{dir, ends[0], ends[1], high} {
		t.Cleanup(func() { syscall.Close(fd) })
		target, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, target)
	}
	return all
}

func TestAKilledChild(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for range 3 { // while it is kept
		pid, ended := warm(t, p)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-ended
	}
	pid, _ := warm(t, p)
	c := hang(nil)
	c.Resource = func(context.Context, string) (json.RawMessage, *script.Failure) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // in the middle
		return json.RawMessage(`{"contents":[]}`), nil
	}
	r := ends(t, p, of("console.log('before'); await call('a/fast'); await resource('u'); for (;;);"), c, "the process that ran the script ended: it was ended by a signal: killed")
	if want := "2 calls ran: a/fast (done), u (done)"; r.Ran() != want || r.Printed != "before\n" {
		t.Errorf("got %s, %q", r.Ran(), r.Printed)
	}
}

func TestAChildThatIsStopped(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	pid, _ := warm(t, p)
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	s := of("return 1")
	s.Time = 200 * time.Millisecond
	ends(t, p, s, echo, "the script was stopped: it was not done after 200ms")
}

func TestChildrenAreUsedAgainAndEndWhenIdle(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	first, _ := warm(t, p)
	if again, _ := warm(t, p); again != first {
		t.Errorf("%d ran the second script, not %d", again, first)
	}
	p.Idle = time.Second
	_, ended := warm(t, p)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it is still kept")
	}
	if pid, _ := warm(t, p); pid == first {
		t.Error("a child that has ended runs scripts")
	}
}

func TestAWornChildIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	warm(t, p)
	run(t, p, "const all = []; for (let i = 0; i < 2e5; i++) all.push({i}); return all.length", echo)
	if pid, _ := p.Warm(); pid != 0 {
		t.Error("a child that took much memory is kept")
	}
}

// A child that breaks the protocol does no harm.
func TestAHostileChild(t *testing.T) {
	t.Parallel()
	const call = `{"call":{"id":%d,"kind":"call","name":"a/b","args":{}}}\n`
	const broken = "the process that ran the script broke its protocol"
	for name, c := range map[string]struct{ lines, words string }{
		"no JSON":             {"hello\n", broken},
		"a call without kind": {`{"call":{"id":1}}\n`, broken},
		"arguments":           {`{"call":{"id":1,"kind":"call","name":"a/b","args":[]}}\n`, broken},
		"an id again":         {fmt.Sprintf(call+call, 1, 1), broken},
		"too many at once":    {fmt.Sprintf(call+call+call, 1, 2, 3), broken},
		"a long line":         {"%017000000d\n", broken},
		"nothing":             {"", "the process that ran the script ended: it exited with status 0"},
		"it reads nothing":    {`{"done":{"value":1}}\n`, ""},
		"unknown blobs":       {`{"done":{"blobs":[-1,0,1,99999999]}}\n`, ""},
		"long output":         {`{"printed":"0123456789abc"}\n{"done":{"dropped":-5}}\n`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh, err := exec.LookPath("sh")
			if err != nil {
				t.Fatal(err)
			}
			p := newPool(t)
			r, err := p.RunIn(t.Context(), &exec.Cmd{Path: sh, Args: []string{"sh", "-c", "printf '" + c.lines + "'"}}, hang(make(chan string, 9)).answer)
			if got := fmt.Sprint(err); c.words == "" && err != nil || !strings.Contains(got, c.words) {
				t.Errorf("got %v", err)
			}
			if name == "long output" && (r.Printed != "0123456789" || r.Dropped != 3) {
				t.Errorf("got %q, %d", r.Printed, r.Dropped)
			}
		})
	}
}
