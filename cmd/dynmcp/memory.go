package main

import (
	"os"
	"runtime/debug"
)

// tuneMemory lets the heap grow to five times what is live before it is
// collected, unless GOGC says otherwise. What is live is a catalogue of some
// MB; nearly all else is messages on their way. Measured on calls of 10 KB and
// 1 MB, this is a tenth to a third less time.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
