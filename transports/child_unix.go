//go:build unix

package transports

import (
	"os/exec"
	"syscall"
	"time"
)

// ownGroup puts the child in a process group of its own: npx and its like
// start trees, and a signal must reach all of one.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (p *child) terminate() { p.signal(syscall.SIGTERM) }
func (p *child) kill()      { p.signal(syscall.SIGKILL) }

// signal reaches the whole group. After gone is closed the number may belong
// to someone else, so nothing is sent.
func (p *child) signal(sig syscall.Signal) {
	select {
	case <-p.gone:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// reap waits for the leader and then ends what it left of its group. While a
// member lives the kernel does not reuse the group's number.
func (p *child) reap() {
	_ = p.cmd.Wait() // what happened is in cmd.ProcessState
	group := -p.cmd.Process.Pid
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if syscall.Kill(group, sig) != nil {
			return
		}
		for end := time.Now().Add(drainGrace); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			if syscall.Kill(group, 0) != nil {
				return
			}
		}
	}
}
