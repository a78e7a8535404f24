package child

import (
	"syscall"
	"time"
)

// afterLimit is how long the command may take that ends what a tree started elsewhere.
const afterLimit = 5 * time.Second

// after is the command that ends what the tree started elsewhere. Without words there is nothing to run.
type after struct {
	file        string // its first line replaces {} in the words; "" replaces nothing
	words       []string
	environment []string
}

// open reads the words.
func (a *after) open(file int) error {
	text, err := readAll(file)
	if err != nil {
		return err
	}
	words := split(append(text, 0), 0)
	a.file, a.words = words[0], words[1:]
	return nil
}

// run runs the command in place of the parent, which is gone or stopped. Nothing waits for its success.
func (a *after) run() {
	if len(a.words) < 2 {
		return
	}
	args := append([]string(nil), a.words[1:]...)
	if a.file != "" {
		text, err := readFile(a.file)
		lines := split(append(text, '\n'), '\n')
		if err != nil || lines[0] == "" {
			return
		}
		for i, arg := range args {
			if arg == "{}" {
				args[i] = lines[0]
			}
		}
		_ = syscall.Unlink(a.file)
	}
	attr := &syscall.ProcAttr{Env: a.environment, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	pid, err := syscall.ForkExec(a.words[0], args, attr)
	if err != nil {
		return
	}
	for end := time.Now().Add(afterLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if reaped, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); reaped == pid || err == syscall.ECHILD {
			return
		}
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}
