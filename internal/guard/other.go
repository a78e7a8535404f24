//go:build !linux

package guard

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// Pid returns the process id of the command.
func (t *Tree) Pid() int { return t.cmd.Process.Pid }

// Wait returns when the command has ended, with an error that describes how, an Ended. Processes that
// it started may remain until Reap has returned.
func (t *Tree) Wait() error {
	err := t.cmd.Wait()
	switch state := t.cmd.ProcessState; {
	case state == nil:
		return fmt.Errorf("it ended: %w", err)
	case state.Exited():
		return &Ended{Status: state.ExitCode()}
	default:
		ended := &Ended{By: state.String()} // signal: killed
		if status, ok := state.Sys().(syscall.WaitStatus); ok {
			ended.Signal = status.Signal()
		}
		return ended
	}
}

// A Fence does nothing here: there is no guard process that could enforce it while this one is
// stopped. The caller must end its tree at the deadline.
type Fence struct{}

// NewFence returns a fence.
func NewFence() (*Fence, error) { return &Fence{}, nil }

// Extend does nothing.
func (f *Fence) Extend(time.Time) {}

// Close does nothing.
func (f *Fence) Close() {}

// StartWith is Start: after a SIGKILL of this process nobody runs the other command.
func StartWith(cmd *exec.Cmd, fence *Fence, restrictions *Restrictions, _ *After) (*Tree, error) {
	return Start(cmd, fence, restrictions)
}

// InstallLimit is how long a tree that installs may continue after it was asked to end,
// whether it works or not.
const InstallLimit = 15 * time.Second

// Installing does nothing: after a SIGKILL of this process nobody can wait, and otherwise the
// caller does.
func (t *Tree) Installing(bool) {}

// End does nothing: the caller waits for InstallLimit, and then ends the tree.
func (t *Tree) End() {}
