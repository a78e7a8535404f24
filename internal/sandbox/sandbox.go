// Package sandbox limits what a server may do: the files that it reads and writes, the
// hosts that it connects to, and the system calls that lead around both. The limits hold
// for all that the server starts. They need no rights of an administrator.
//
// On Linux they are a Landlock ruleset and a seccomp filter, which [Build] makes and the
// guard puts on the command that it starts. On macOS they are a profile, and sandbox-exec starts
// the command; that is compiled and compared, and has not been run. Elsewhere Build fails.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Network says what a server may connect to.
type Network int

const (
	AllNetwork  Network = iota
	NoNetwork           // no socket but pairs
	OnlyByProxy         // TCP, to the port of a proxy on this machine
)

// A Policy is what a server may do. Paths are absolute; those that are not there are left
// out.
type Policy struct {
	Read    []string // files, and directories with all below them; programs there may run
	Write   []string // the same, and changed
	Network Network
	Proxy   uint16 // port, of OnlyByProxy
	// BestEffort builds what the system can do. Otherwise a part that is missing is an error.
	BestEffort bool

	asked bool // the listener refuses sockets of the network, where there is none
}

// Walls are what a policy is made of: begin makes what does not need its paths, and build the
// rest. They can be put on many commands, until Close.
type Walls struct {
	Ruleset *os.File // of Landlock; nil where there is none
	Filter  []byte   // for seccomp: struct sock_filter after struct sock_filter, or guard.NoFilter
	Profile string   // for macOS; empty elsewhere
	Missing []string // what the system cannot limit, in words
}

// A Status says how a sandbox is.
type Status struct {
	Missing     []string // what the system cannot limit
	ProxyBytes  int64    // that passed the proxy, both ways
	Refused     int      // connections, by the proxy
	LastRefused []string // why the last of them were, oldest first
}

// ErrUnsupported is the error of a system without any means.
var ErrUnsupported = errors.New("a sandbox needs Linux with Landlock, or macOS")

// A MissingError says what of a policy the system cannot enforce.
type MissingError struct{ Parts []string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("this system cannot limit %s (\"best_effort\": true in the sandbox starts the server all the same)", strings.Join(e.Parts, ", nor "))
}

// Close gives back what the walls hold.
func (w *Walls) Close() error {
	if w == nil || w.Ruleset == nil {
		return nil
	}
	return w.Ruleset.Close()
}
