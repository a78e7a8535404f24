package crash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A run of these tests with this variable is the run that ends.
const endsBy = "CRASH_ENDS_BY"

func TestMain(m *testing.M) {
	if way := os.Getenv(endsBy); way != "" {
		run(way, os.Args[1])
		return
	}
	os.Exit(m.Run())
}

// run logs 100 lines and ends.
func run(way, dir string) {
	log, end := Watch(io.Discard, dir, "9.9.9")
	defer end()
	for n := range 100 {
		fmt.Fprintf(log, "time=x level=INFO msg=line%d %s\n", n, strings.Repeat("x", n*10))
	}
	done := make(chan struct{})
	go func() {
		ways[way].do(log)
		close(done) // not deferred: what is deferred runs before a panic ends the process
	}()
	<-done
}

var ways = map[string]struct {
	do    func(log io.Writer)
	cause string // "" for no trace
	stack string
}{
	"clean":      {func(io.Writer) {}, "", ""},
	"exit":       {func(io.Writer) { os.Exit(3) }, "", ""},
	"killed":     {func(io.Writer) { p, _ := os.FindProcess(os.Getpid()); _ = p.Kill(); select {} }, "", ""},
	"panic":      {func(io.Writer) { panic(errors.New("boom")) }, "panic: boom", "crash.init"},
	"nil":        {func(io.Writer) { var p *int; *p = 1 }, "panic: runtime error: invalid memory address", "crash.init"},
	"throw":      {func(io.Writer) { new(sync.Mutex).Unlock() }, "a fatal error of the Go runtime", "crash.init"},
	"map writes": {func(io.Writer) { writeTogether() }, "a fatal error of the Go runtime", "crash.writeTogether"},
	"overflow":   {func(io.Writer) { debug.SetMaxStack(1 << 16); deepest = recurse(0) }, "a fatal error of the Go runtime", "crash.recurse"},
	"recovered": {func(log io.Writer) {
		fmt.Fprint(log, `time=x level=ERROR msg=panic panic=boom stack="goroutine 7:\n\tin some.function\n"`+"\n")
	}, "time=x level=ERROR msg=panic panic=boom", "in some.function"},
}

var deepest int

func recurse(n int) int { return further(n+1) + n }

func further(n int) int { return recurse(n+1) - n }

func writeTogether() {
	m := map[int]int{}
	for range 4 {
		go func() {
			for n := 0; ; n++ {
				m[n%100] = n
			}
		}()
	}
	select {}
}

// However a run ends, its trace says why, or nothing is left of it.
func TestTraceOfEachEnd(t *testing.T) {
	t.Parallel()
	for way, want := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "crashes")
			cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
			cmd.Env = append(os.Environ(), endsBy+"="+way, "GORACE=halt_on_error=0")
			out, ended := cmd.CombinedOutput()
			all := Sweep(dir)
			if again := Sweep(dir); !slices.Equal(again, all) {
				t.Errorf("got %v, and then %v", all, again)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			if want.cause == "" {
				if len(all) != 0 || len(files) != 0 {
					t.Errorf("left are %v, in %q", all, files)
				}
				return
			}
			if len(all) != 1 || !strings.HasPrefix(all[0].Cause, want.cause) || !strings.HasPrefix(all[0].About, "dynmcp 9.9.9, go") || time.Since(all[0].At) > time.Hour {
				t.Fatalf("got %+v, want %s: %v, %s", all, want.cause, ended, out)
			}
			text, err := os.ReadFile(all[0].Path)
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %q", err, files)
			}
			head, stack := string(text[:headBytes]), string(text[headBytes:])
			if !strings.Contains(stack, want.stack) {
				t.Errorf("the stack is %.2000s", stack)
			}
			if got := strings.Count(head, "msg=line"); got < maxLogLines-1 || got > maxLogLines || !strings.Contains(head, "msg=line99 ") || !strings.HasSuffix(head, " \n") {
				t.Errorf("%d lines of the log in %s", got, head)
			}
			if info, err := os.Stat(all[0].Path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

// The number and the size of the files of ended runs are limited.
func TestFewAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 3 * maxKept {
		path := filepath.Join(dir, fmt.Sprintf("run-%d.txt", 1<<30+n)) // no process has this number
		if err := os.WriteFile(path, []byte(strings.Repeat("x", headBytes)+fmt.Sprintf("panic: %d\n", n)+strings.Repeat("y", 2*maxStack)), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1e9+n), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	all := Sweep(dir)
	if len(all) != maxKept || all[0].Cause != fmt.Sprintf("panic: %d", 3*maxKept-1) {
		t.Errorf("got %+v", all)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.Size() > headBytes+maxStack {
			t.Errorf("%s has %d bytes, %v", path, info.Size(), err)
		}
	}
	if len(files) != maxKept {
		t.Errorf("left are %q", files)
	}
}
