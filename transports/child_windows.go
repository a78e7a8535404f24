package transports

import (
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup keeps a Ctrl-C of our console from the child; we end it ourselves.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate does nothing: there is no SIGTERM, closing stdin was the request.
func (p *child) terminate() {}

// kill ends the child and its descendants.
func (p *child) kill() {
	select {
	case <-p.gone:
		return
	default:
	}
	err := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.cmd.Process.Pid)).Run()
	if err != nil {
		_ = p.cmd.Process.Kill()
	}
}

func (p *child) reap() { _ = p.cmd.Wait() }
