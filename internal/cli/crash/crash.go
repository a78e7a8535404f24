// Package crash keeps a trace of runs that end by a panic or by a fatal error of the Go runtime: a
// file with the version, the last lines of the log, and the stack.
//
// No code of ours runs after a fatal error, so the file exists during the whole run. It begins with
// a head of fixed size, which every line of the log rewrites; the runtime appends the stack.
package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
)

const (
	maxLogLines = 20
	maxLogLine  = 400 // bytes
	headBytes   = 9 << 10
	maxPanics   = 5         // recovered ones that a run records
	maxKept     = 10        // files of ended runs
	maxStack    = 256 << 10 // bytes of an ended run's stacks
)

// A trace is the file of a run that has not ended. The handler of the log calls Write for one line
// at a time.
type trace struct {
	file   *os.File
	about  string
	lines  []string
	panics atomic.Int32
}

// Watch keeps the trace of this process in dir until end is called, and returns a writer for its log.
// What is written to it has no secrets. Without a trace that is out.
func Watch(out io.Writer, dir, version string) (log io.Writer, end func()) {
	t, err := begin(dir, version)
	if err != nil {
		return out, func() {}
	}
	return io.MultiWriter(t, out), t.end
}

func begin(dir, version string) (*trace, error) {
	if dir == "" {
		return nil, os.ErrNotExist
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	_ = Sweep(dir)
	path := filepath.Join(dir, fmt.Sprintf("run-%d.txt", os.Getpid()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	t := &trace{file: file, about: fmt.Sprintf("dynmcp %s, %s, %s/%s, began %s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.RFC3339))}
	t.writeHead()
	err = t.atEnd(func(stack *os.File) error { return debug.SetCrashOutput(stack, debug.CrashOptions{}) })
	if err != nil {
		t.end()
	}
	return t, err
}

// atEnd opens the file so that what is written follows its content.
func (t *trace) atEnd(do func(*os.File) error) error {
	file, err := os.OpenFile(t.file.Name(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return do(file)
}

func (t *trace) writeHead() {
	head := fmt.Appendf(nil, "%s\nThe last lines of its log:\n%s", t.about, strings.Join(t.lines, ""))
	head = append(head, bytes.Repeat([]byte(" "), max(0, headBytes-len(head)-1))...)
	_, _ = t.file.WriteAt(append(head, '\n'), 0) // a trace is not worth an error
}

// Write adds a line of the log, and the stack of a recovered panic that it reports.
func (t *trace) Write(line []byte) (int, error) {
	text := string(line)
	if strings.Contains(text, " panic=") && strings.Contains(text, " stack=") && t.panics.Add(1) <= maxPanics {
		_ = t.atEnd(func(stack *os.File) error {
			_, err := stack.WriteString(strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(text))
			return err
		})
	}
	if len(text) > maxLogLine {
		text = strings.ToValidUTF8(text[:maxLogLine], "") + "…\n"
	}
	if t.lines = append(t.lines, text); len(t.lines) > maxLogLines {
		t.lines = slices.Clone(t.lines[1:])
	}
	t.writeHead()
	return len(line), nil
}

// end removes the file, unless there was a panic.
func (t *trace) end() {
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	_ = t.file.Close()
	if t.panics.Load() == 0 {
		_ = os.Remove(t.file.Name())
	}
}

// A Crash is the trace of a run with a panic or a fatal error.
type Crash struct {
	Path  string
	About string // the version, and when the run began
	Cause string
	At    time.Time
}

// Sweep returns the crashes, newest first. It removes all but the newest, and the files of runs that
// were killed.
func Sweep(dir string) (all []Crash) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.txt"))
	for _, path := range files {
		var pid int
		running := false
		if n, _ := fmt.Sscanf(filepath.Base(path), "run-%d.txt", &pid); n == 1 {
			running = pid != os.Getpid() && isRunning(pid)
		}
		if info, err := os.Lstat(path); err != nil || running && info.Size() <= headBytes {
			continue
		} else if c, ok := read(path); !ok {
			_ = os.Remove(path)
		} else {
			if c.At = info.ModTime(); pid != 0 && !running {
				c.Path = filepath.Join(dir, fmt.Sprintf("crash-%s-%d.txt", c.At.UTC().Format("20060102T150405Z"), pid))
				if info.Size() > headBytes+maxStack {
					_ = os.Truncate(path, headBytes+maxStack)
					_ = os.Chtimes(path, c.At, c.At)
				}
				_ = os.Rename(path, c.Path)
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Crash) int { return b.At.Compare(a.At) })
	for len(all) > maxKept {
		_ = os.Remove(all[len(all)-1].Path)
		all = all[:len(all)-1]
	}
	return all
}

// read returns the crash in a file; ok is false if there is none.
func read(path string) (c Crash, ok bool) {
	text, err := regular.Head(context.Background(), path, headBytes+maxStack)
	if err != nil || len(text) <= headBytes {
		return c, false
	}
	about, _, _ := strings.Cut(string(text), "\n")
	cause, _, _ := strings.Cut(string(text[headBytes:]), "\n")
	if cause == "" { // the runtime writes that line to stderr only
		cause = "a fatal error of the Go runtime"
	}
	return Crash{Path: path, About: about, Cause: strings.ToValidUTF8(cause[:min(len(cause), maxLogLine)], "")}, true
}

func isRunning(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false // on Windows
	}
	defer func() { _ = p.Release() }()
	return runtime.GOOS == "windows" || !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
