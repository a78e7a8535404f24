// Package sandbox makes limits of programs: the files that they read and write, the hosts that they connect
// to, and the system calls that bypass both. The limits apply to everything that a program starts. They
// need no administrator rights.
//
// On Linux they are a Landlock ruleset and a seccomp filter, which [Build] makes and the guard
// applies to the command that it starts. On macOS they are a profile, and sandbox-exec starts
// the command; that code is compiled and compared, and has not been run. Elsewhere Build fails.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Network says which hosts a server may connect to.
type Network int

const (
	AllNetwork  Network = iota
	NoNetwork           // only socket pairs
	OnlyByProxy         // TCP, to the port of a proxy on this machine
)

// A Policy describes the access of a server. Paths are absolute; missing ones are ignored.
type Policy struct {
	Read    []string // files, and directories with everything below them; programs there may run
	Write   []string // as Read, and may be changed
	Network Network
	Proxy   uint16 // port, of OnlyByProxy
	// BestEffort enforces as much as the system can. Otherwise a missing part is an error.
	BestEffort bool

	// Traced means that, without a network, a listener refuses its sockets: see Asking.
	Traced bool
}

// Restrictions enforce a policy: Begin makes the parts that do not need its paths, and their Build the
// rest. They can be used for many commands, until Close.
type Restrictions struct {
	Ruleset *os.File // of Landlock; nil if there is none
	Filter  []byte   // for seccomp: struct sock_filter after struct sock_filter, or guard.NoFilter
	Profile string   // for macOS; empty elsewhere
	Missing []string // parts that the system cannot limit, in words
}

// ErrUnsupported is the error of a system that has no sandbox.
var ErrUnsupported = errors.New("a sandbox needs Linux with Landlock, or macOS")

// A MissingError lists the parts of a policy that the system cannot enforce.
type MissingError struct{ Parts []string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("this system cannot limit %s (\"best_effort\": true in the sandbox starts the server all the same)", strings.Join(e.Parts, ", nor "))
}

// Close releases the resources of the restrictions.
func (w *Restrictions) Close() error {
	if w == nil || w.Ruleset == nil {
		return nil
	}
	return w.Ruleset.Close()
}
