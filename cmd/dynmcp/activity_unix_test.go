//go:build unix

package main_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// recorded runs dynmcp with a record of calls. It also returns a function that reads the
// arguments of the recorded calls.
func recorded(t *testing.T) (*mcptest.Host, func() map[string]bool) {
	t.Helper()
	config := mcptest.Config(t, document([]entry{fake(t, "alpha")}, `"activity": {"dir": "record", "arguments": true}`))
	host := mcptest.StartDynmcp(t, "-c", config)
	greet(host)
	use(host, "alpha/echo", nil)
	return host, func() map[string]bool {
		r := &activity.Reader{Dir: filepath.Join(filepath.Dir(config), "record")}
		lines, err := r.Next(context.Background(), &activity.Filter{Tool: "alpha/echo"})
		if err != nil || r.Broken > 0 {
			t.Fatalf("%d broken lines, %v", r.Broken, err)
		}
		seen := map[string]bool{}
		for _, l := range lines {
			seen[string(l.Arguments)] = true
		}
		return seen
	}
}

// Every call that was answered before SIGTERM is recorded.
func TestRecordIsWholeAfterSIGTERM(t *testing.T) {
	t.Parallel()
	host, lines := recorded(t)
	const calls = 500
	for n := range calls {
		use(host, "alpha/echo", fmt.Sprintf(`{"n":%d}`, n))
	}
	host.Signal(syscall.SIGTERM)
	host.Wait()
	if seen := lines(); len(seen) != calls+1 {
		t.Errorf("%d calls were recorded, want %d", len(seen), calls+1)
	}
}

// A kill loses only calls of the last 100 ms. On a busy machine dynmcp may not run for that
// long, so one of five tries must pass.
func TestRecordAfterSIGKILL(t *testing.T) {
	t.Parallel()
	worst := time.Duration(0)
	for range 5 {
		host, lines := recorded(t)
		const calls = 300
		var answered [calls]time.Time
		for n := range answered {
			use(host, "alpha/echo", fmt.Sprintf(`{"n":%d}`, n))
			answered[n] = time.Now()
		}
		killed := time.Now()
		host.Signal(syscall.SIGKILL)
		host.Wait()
		seen, lost := lines(), time.Duration(0)
		for n, at := range answered {
			if !seen[fmt.Sprintf(`{"n":%d}`, n)] {
				lost = max(lost, killed.Sub(at))
			}
		}
		if lost <= 100*time.Millisecond {
			return
		}
		worst = max(worst, lost)
	}
	t.Errorf("a call is missing that was answered %v before the kill", worst)
}

// A reload turns the record on and off, and changes its directory and size. A directory that
// cannot be used changes nothing.
func TestReloadChangesTheRecord(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha")
	l := run(t, nil, alpha)
	with := func(activity ...string) {
		loads := l.loads()
		l.write(document([]entry{alpha}, activity...), false)
		l.await(loads + 1)
	}
	call := func(n int, more string) {
		if m := use(l.Host, "alpha/echo", fmt.Sprintf(`{"n":%d,"more":%q}`, n, more)); m.IsError() {
			t.Fatal(string(m.Raw))
		}
	}
	call(0, "")
	with(`"activity": {"dir": "one", "arguments": true}`)
	call(1, "")
	with(`"activity": {"dir": "two", "arguments": true}`)
	call(2, "")
	with(`"activity": {"dir": ` + quote(filepath.Base(l.path)) + `, "arguments": true}`) // a file
	contains(t, l.Stderr(), "calls are recorded as before", filepath.Base(l.path))
	call(3, "")
	with(`"activity": {"dir": "small", "arguments": true, "max_bytes": 65536}`)
	const small = 40
	for n := range small {
		call(n, strings.Repeat("x", 1000))
		if n%8 == 7 { // the size of a file is checked when it is written
			mcptest.Eventually(t, "the calls were written", func() bool { return len(lines(t, l, "small")) == n+1 })
		}
	}
	with()
	call(4, "")
	with(`"activity": {"dir": "one"}`)
	call(5, "")
	l.Signal(syscall.SIGTERM)
	l.Wait()

	one := lines(t, l, "one")
	if len(one) != 2 || !strings.Contains(string(one[0].Arguments), `"n":1`) || one[1].Arguments != nil || one[0].Run == one[1].Run {
		t.Errorf("one has %+v", one)
	}
	two := lines(t, l, "two")
	if len(two) != 2 || !strings.Contains(string(two[0].Arguments), `"n":2`) || !strings.Contains(string(two[1].Arguments), `"n":3`) {
		t.Errorf("two has %+v", two)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(l.path), "small", "*.jsonl"))
	if got := lines(t, l, "small"); err != nil || len(files) < 3 || len(got) != small {
		t.Errorf("small has %d calls in %d files: %v", len(got), len(files), err)
	}
}

// lines returns the calls of alpha/echo that are recorded in a directory beside the config.
func lines(t *testing.T, l *live, dir string) []activity.Line {
	t.Helper()
	r := &activity.Reader{Dir: filepath.Join(filepath.Dir(l.path), dir)}
	got, err := r.Next(context.Background(), &activity.Filter{Tool: "alpha/echo"})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
