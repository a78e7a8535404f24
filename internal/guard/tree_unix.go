//go:build unix && !linux

package guard

import (
	"os/exec"
	"syscall"
	"time"
)

// grace is the time after SIGTERM for processes that a command left behind.
const grace = 500 * time.Millisecond

// A Tree is a command that was started, and those of its descendants that stay in its process
// group.
type Tree struct{ cmd *exec.Cmd }

// Start starts cmd in a session of its own. Wait and then Reap must be called. A
// failure that is not the command's fault is ErrResources.
func Start(cmd *exec.Cmd, _ *Fence, _ *Walls) (*Tree, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &Tree{cmd}, MarkResources(cmd.Start())
}

// Pid returns the process id of the command.
func (t *Tree) Pid() int { return t.cmd.Process.Pid }

// Terminate asks the command and its group to end, with SIGTERM.
func (t *Tree) Terminate() { _ = syscall.Kill(-t.Pid(), syscall.SIGTERM) }

// Kill ends the group at once.
func (t *Tree) Kill() { _ = syscall.Kill(-t.Pid(), syscall.SIGKILL) }

// Wait returns when the command has ended, with an error that describes how. Processes that
// it started may remain until Reap has returned.
func (t *Tree) Wait() error {
	err := t.cmd.Wait()
	return describe(t.cmd.ProcessState, err)
}

// Reap ends the rest of the command's group. While a member lives the kernel does not reuse
// the group's number.
func (t *Tree) Reap() {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if syscall.Kill(-t.Pid(), sig) != nil {
			return
		}
		for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			if syscall.Kill(-t.Pid(), 0) != nil {
				return
			}
		}
	}
}
