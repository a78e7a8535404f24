//go:build !linux

package engine

import (
	"os"
	"time"
)

// Missing returns what this system cannot limit of an engine, in words.
func Missing() []string { return []string{"memory and processor time (Linux can)"} }

func input() *os.File { return os.Stdin }

func limit() error { return nil }

func limitCPU(time.Duration) {}

// used returns 0: the processor time is not known.
func used() time.Duration { return 0 }
