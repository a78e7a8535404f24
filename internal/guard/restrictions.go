package guard

import (
	"errors"
	"os"
)

// NoFilter is returned by Filter on a system without seccomp. The other limits still apply.
var NoFilter = []byte{0}

// Restrictions limit a command and everything that it starts: see package sandbox, which makes them.
// They work only on Linux.
type Restrictions struct {
	Ruleset *os.File // of Landlock; may be nil
	// Filter returns the seccomp filter when the restrictions are complete; may be nil. It is called
	// while the guard starts, which takes longer than the restrictions.
	Filter func() ([]byte, error)
	// Listener is a socket from which the guard reads a second seccomp filter, and on which it
	// sends the file of that filter's notifications; may be nil.
	Listener *os.File
}

// ErrFenced means that the deadline of a tree's [Fence] has passed.
var ErrFenced = errors.New("it was killed: its replica lost the lease")
