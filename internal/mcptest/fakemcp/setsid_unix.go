//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// setsid takes the child out of our process group and session.
func setsid(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
