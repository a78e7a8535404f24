package guard

import "os"

// Walls are what a command and all that it starts may not pass: see package sandbox, which
// makes them. They hold on Linux alone.
type Walls struct {
	Ruleset *os.File // of Landlock; nil is none
	Filter  []byte   // of seccomp; empty is none
}
