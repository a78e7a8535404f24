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
func Start(cmd *exec.Cmd, _ *Fence, _ *Restrictions) (*Tree, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &Tree{cmd}, MarkResources(cmd.Start())
}

// Terminate asks the command and its group to end, with SIGTERM.
func (t *Tree) Terminate() { _ = syscall.Kill(-t.Pid(), syscall.SIGTERM) }

// Kill ends the group at once.
func (t *Tree) Kill() { _ = syscall.Kill(-t.Pid(), syscall.SIGKILL) }

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
