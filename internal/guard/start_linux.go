package guard

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard/child"
)

const (
	// startLimit is how long a guard may take to start its command.
	startLimit = 10 * time.Second
	// guardLimit is how long a guard may take to end the tree once SIGKILL is due. Then the
	// guard, which may be stopped, is killed itself, and this process ends the tree.
	guardLimit = time.Second
)

// A Tree is a command that was started, and everything it starts in turn.
type Tree struct {
	guard  *os.Process
	orders *os.File // our end; when it is closed the guard ends the tree
	events *bufio.Reader
	closer *os.File // closes events
	pid    int
}

// Start starts cmd as exec.Cmd.Start does, in a session of its own. Of cmd only the path,
// the arguments, the directory, the environment and the three streams are used; the streams
// must be files. Wait and then Reap must be called. A failure that is not the command's
// fault is ErrResources. A fence, which may be nil, kills the tree at its deadline; starting
// a tree after that is ErrFenced. Restrictions, which may be nil, confine the command and not its
// guard.
func Start(cmd *exec.Cmd, fence *Fence, restrictions *Restrictions) (*Tree, error) {
	return StartWith(cmd, fence, restrictions, nil)
}

// StartWith is Start for a command whose guard runs another one, which may be nil, when it has ended the
// tree by itself.
func StartWith(cmd *exec.Cmd, fence *Fence, restrictions *Restrictions, after *After) (*Tree, error) {
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, MarkResources(err)
	}
	defer theirOrders.Close()
	events, theirEvents, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, MarkResources(err)
	}
	defer theirEvents.Close()
	t := &Tree{orders: orders, events: bufio.NewReader(events), closer: events}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	words, pipeErr := after.pipe()
	defer closeAll(null, words)
	if err = errors.Join(err, pipeErr); err != nil {
		t.close()
		return nil, MarkResources(err)
	}
	name := child.Name
	files := []*os.File{file(cmd.Stdin, null), file(cmd.Stdout, null), file(cmd.Stderr, null), theirOrders, theirEvents}
	if fence != nil {
		name, files = name+child.Fenced, append(files, fence.file)
	}
	if after != nil {
		name, files = name+child.After, append(files, words)
	}
	if restrictions != nil && restrictions.Ruleset != nil {
		name, files = name+child.Landlock, append(files, restrictions.Ruleset)
	}
	var filter *os.File
	if restrictions != nil && restrictions.Filter != nil {
		var theirFilter *os.File
		if theirFilter, filter, err = os.Pipe(); err != nil {
			t.close()
			return nil, MarkResources(err)
		}
		defer theirFilter.Close()
		defer filter.Close()
		name, files = name+child.Seccomp, append(files, theirFilter)
	}
	if restrictions != nil && restrictions.Listener != nil {
		name, files = name+child.Notify, append(files, restrictions.Listener)
	}
	t.guard, err = startGuard(append([]string{name, cmd.Path}, cmd.Args...), &os.ProcAttr{
		Dir:   cmd.Dir,
		Env:   append([]string{child.Environment}, cmd.Environ()...),
		Files: files,
		// When this process is gone, a stopped guard continues, and ends the tree.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT},
	})
	if err != nil {
		t.close()
		return nil, MarkResources(err)
	}
	theirEvents.Close() // so that events end with the guard
	if filter != nil {
		err = restrictions.give(filter)
	}
	if err == nil {
		err = t.started()
	}
	if err != nil {
		t.Reap()
		return nil, err
	}
	return t, nil
}

// give writes the filter to a guard that waits for it. A guard without a filter starts nothing.
func (w *Restrictions) give(filter *os.File) error {
	defer filter.Close()
	text, err := w.Filter()
	if err != nil {
		return MarkResources(err)
	}
	_, _ = filter.Write(text) // a pipe has room for it; events show that a guard is gone
	return nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // a nil file returns an error
	}
}

// file returns a stream of a command, or instead if the command has none.
func file(stream any, instead *os.File) *os.File {
	if f, ok := stream.(*os.File); ok {
		return f
	}
	return instead
}

// started waits until the guard reports that the command runs: 2 ms on an idle machine.
func (t *Tree) started() error {
	_ = t.closer.SetReadDeadline(time.Now().Add(startLimit))
	defer t.closer.SetReadDeadline(time.Time{})
	switch event, n := t.next(); event {
	case child.EventStarted:
		t.pid = n
		return nil
	case child.EventFailed:
		return MarkResources(syscall.Errno(n))
	case child.EventFenced:
		return ErrFenced
	}
	return fmt.Errorf("%w: the guard process did not start", ErrResources)
}

// next returns the guard's next event and its number; the name is "" if there is none.
func (t *Tree) next() (name string, n int) {
	line, err := t.events.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &name, &n)
	}
	if err != nil {
		return "", 0
	}
	return name, n
}

// Pid returns the process id of the command.
func (t *Tree) Pid() int { return t.pid }

// Terminate asks the command and its group to end, with SIGTERM.
func (t *Tree) Terminate() { t.order(child.OrderTerminate) }

// Kill ends every process of the tree at once. Wait and Reap return within a second even if
// the guard does nothing.
func (t *Tree) Kill() {
	t.order(child.OrderKill)
	time.AfterFunc(guardLimit, t.killGuard)
}

func (t *Tree) killGuard() { _ = t.guard.Kill() }

// InstallLimit is how long a tree that installs may continue to work after it was asked to
// end.
const InstallLimit = child.InstallLimit

// Installing reports whether the command installs something, such as a package, that
// would be unusable if interrupted. During that time, End and the end of this process let it
// continue while it works, at most for InstallLimit; Terminate and Kill do not.
func (t *Tree) Installing(on bool) {
	order := byte(child.OrderInstalled)
	if on {
		order = child.OrderInstalling
	}
	t.order(order)
}

// End makes the guard end the tree as if this process were gone.
func (t *Tree) End() { t.order(child.OrderEnd) }

// order sends an order to the guard. If the guard is gone the order is moot: Reap kills the
// processes that it left.
func (t *Tree) order(what byte) { _, _ = t.orders.Write([]byte{what}) }

// Wait returns when the command has ended, with an error that describes how: an Ended, ErrFenced if
// its fence killed it. Processes that it started may remain until Reap has returned.
func (t *Tree) Wait() error {
	event, n := t.next()
	fenced := event == child.EventFenced
	if fenced {
		event, n = t.next()
	}
	if event != child.EventEnded {
		return errors.New("its guard was killed")
	}
	switch status := syscall.WaitStatus(n); {
	case fenced:
		return ErrFenced
	case status.Signaled():
		return &Ended{Signal: status.Signal(), By: "signal: " + status.Signal().String()}
	default:
		return &Ended{Status: status.ExitStatus()}
	}
}

// Reap returns when nothing of the tree is left. It ends a command that still runs.
func (t *Tree) Reap() {
	t.order(child.OrderReap)
	t.close()
	late := time.AfterFunc(child.Grace+guardLimit, t.killGuard)
	defer late.Stop()
	if !waitGuard(t.guard) {
		killOrphans()
	}
}

func (t *Tree) close() {
	t.orders.Close()
	t.closer.Close()
}
