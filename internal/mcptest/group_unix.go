//go:build unix

package mcptest

import (
	"errors"
	"os"
	"syscall"
)

// begin starts the child as the leader of a process group, so that a signal reaches it and its
// descendants.
func begin(p *Process) error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return p.cmd.Start()
}

// killGroup kills the child's process group, which may be gone.
func killGroup(p *Process) { _ = syscall.Kill(-p.Pid(), syscall.SIGKILL) }

// terminate asks the process to exit.
func (p *Process) terminate() { p.Signal(syscall.SIGTERM) }

func (p *Process) signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

func killPid(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func exists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
