//go:build unix

package mcptest

import (
	"errors"
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of a process group, so that a signal can
// reach it and what it started.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup may come late: the leader is gone and its group, if empty, too.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// terminate asks a process to leave.
func (p *Process) terminate() { p.Signal(syscall.SIGTERM) }

func killPid(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func exists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
