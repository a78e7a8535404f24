package guard

import (
	"fmt"
	"syscall"
)

// SIGXCPU is the signal of a process that has used its processor time. Package syscall lacks it on Windows,
// where no process gets it.
const SIGXCPU = syscall.Signal(24)

// An Ended is the error of a command that has ended: by itself, with an exit status, or by a signal.
type Ended struct {
	Status int
	Signal syscall.Signal // 0 if it exited
	By     string         // the signal for people, "" if it exited
}

func (e *Ended) Error() string {
	if e.By != "" {
		return "it was ended by a " + e.By
	}
	return fmt.Sprintf("it exited with status %d", e.Status)
}
