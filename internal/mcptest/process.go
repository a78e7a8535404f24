package mcptest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// watchdog is how long a test waits for an event that must happen. It is far longer than the slowest
// machine needs: it only ends hangs.
var watchdog = 3 * time.Minute

// HostOptions describe the process to start, the answers to its requests and its expected end.
type HostOptions struct {
	Args []string // the program and its arguments
	Env  []string // in addition to Environ(t)
	Dir  string   // "": a fresh directory

	OnRequest Handlers // answers to requests

	// Lingers means that the process does not exit when its stdin is closed.
	Lingers bool
	// Orphans means that descendants may outlive the process. They are killed.
	Orphans bool
	// Console gives the process a console of its own on Windows. Without one it cannot be
	// interrupted there.
	Console bool
}

// A Process is a child process of the test. When the test ends, its stdin is closed; if it then does
// not exit with status 0, or leaves descendants behind, the test fails. The status is not checked if
// the test has ended the process itself.
type Process struct {
	t      testing.TB
	opts   HostOptions
	cmd    *exec.Cmd
	marker string

	stdin  *os.File
	stdout *os.File // the reader belongs to the caller that started the process
	stderr *os.File
	errors *buffer
	drains sync.WaitGroup
	exited chan struct{} // closed when the process is gone

	mu    sync.Mutex
	asked bool // the test has ended the process, or waited for its end
}

// Run starts a process whose stdout has no messages: a server, a command.
func Run(t testing.TB, opts HostOptions) *Process {
	t.Helper()
	p := start(t, opts)
	p.drains.Go(func() { _, _ = io.Copy(io.Discard, p.stdout) })
	return p
}

// start starts a process. The caller reads its stdout to the end, on a goroutine of drains.
func start(t testing.TB, opts HostOptions) *Process {
	t.Helper()
	p := &Process{t: t, opts: opts, errors: newBuffer(), exited: make(chan struct{}), marker: newMarker()}
	p.cmd = exec.Command(opts.Args[0], opts.Args[1:]...)
	if p.cmd.Dir = opts.Dir; p.cmd.Dir == "" {
		p.cmd.Dir = t.TempDir()
	}
	p.cmd.Env = append(Environ(t), p.marker)
	p.cmd.Env = append(p.cmd.Env, opts.Env...)
	if err := p.launch(); err != nil {
		t.Fatalf("start %s: %v", opts.Args[0], err)
	}
	t.Cleanup(p.cleanup)
	p.drains.Go(func() { p.errors.fill(p.stderr) })
	go func() {
		_ = p.cmd.Wait() // the state is read from cmd.ProcessState
		close(p.exited)
	}()
	return p
}

// launch starts the child with pipes of os.Pipe. With those of exec, Wait would not return while a
// descendant holds one of them, and writes could have no deadline.
func (p *Process) launch() error {
	in, stdin, err1 := os.Pipe()
	stdout, out, err2 := os.Pipe()
	stderr, errw, err3 := os.Pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errw
	p.stdin, p.stdout, p.stderr = stdin, stdout, stderr
	err := begin(p)
	for _, theirs := range []*os.File{in, out, errw} {
		_ = theirs.Close()
	}
	if err != nil {
		for _, ours := range []*os.File{stdin, stdout, stderr} {
			_ = ours.Close()
		}
	}
	return err
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Marker returns the environment entry, NAME=VALUE, of this process and its descendants:
// Processes(p.Marker()) finds them.
func (p *Process) Marker() string { return p.marker }

// Stderr returns the standard error of the process so far.
func (p *Process) Stderr() string { return p.errors.String() }

// WaitStderr waits until standard error contains text, and returns all of it.
func (p *Process) WaitStderr(text string) string {
	p.t.Helper()
	if !p.errors.waitFor(text) {
		p.t.Fatalf("standard error never held %q\n%s", text, p.report())
	}
	return p.Stderr()
}

// CloseStdin closes the process's stdin, as a host does when it ends.
func (p *Process) CloseStdin() {
	p.endIsAsked()
	_ = p.stdin.Close()
}

// Signal sends a signal to the process alone. The test is skipped on systems without the signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	p.endIsAsked()
	if err := p.signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %v: %v", s, err)
	}
}

// Kill kills the process, but not its descendants.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(os.Kill)
	p.Wait()
}

func (p *Process) endIsAsked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = true
}

// Exited is closed when the process is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits for the process to exit and returns its exit code, -1 if a signal ended it. All its
// output has then been read.
func (p *Process) Wait() int {
	p.t.Helper()
	p.endIsAsked()
	if !within(watchdog, p.exited) {
		p.t.Fatalf("the process did not leave\n%s", p.report())
	}
	p.drain()
	return p.cmd.ProcessState.ExitCode()
}

// drain waits for the readers of the pipes. It closes the pipes after a second, because a descendant
// may hold them open.
func (p *Process) drain() {
	drained := make(chan struct{})
	go func() { p.drains.Wait(); close(drained) }()
	if !within(time.Second, drained) {
		_ = p.stdout.Close()
		_ = p.stderr.Close()
		<-drained
	}
}

func (p *Process) report() string {
	return fmt.Sprintf("command: %s\nstandard error:\n%s", strings.Join(p.cmd.Args, " "), indentTail(p.Stderr()))
}

func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	}
	select { // a done channel counts even with a timeout of 0
	case <-done:
		return true
	default:
		return false
	}
}

// indentTail returns the end of a text, indented.
func indentTail(s string) string {
	const keep = 8 << 10
	if len(s) > keep {
		s = fmt.Sprintf("(%d bytes before)…%s", len(s)-keep, s[len(s)-keep:])
	}
	return "\t" + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n\t")
}
