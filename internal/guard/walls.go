package guard

import "os"

// NoFilter is what a Filter returns on a system that has none. The command gets the other walls.
var NoFilter = []byte{0}

// Walls are what a command and all that it starts may not pass: see package sandbox, which
// makes them. They hold on Linux alone.
type Walls struct {
	Ruleset *os.File // of Landlock; nil is none
	// Filter returns that of seccomp when the walls are complete; nil is none. It is called
	// while the guard starts, which takes longer than the walls.
	Filter func() ([]byte, error)
	// Listener is a socket, on which the guard gives away the file by which the kernel asks about
	// calls of the command; nil is none.
	Listener *os.File
}
