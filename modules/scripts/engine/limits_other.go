//go:build !linux

package engine

import (
	"os"
	"time"
)

// Missing describes the limits of an engine that this system cannot enforce.
func Missing() []string { return []string{"memory and processor time (Linux can)"} }

func input() *os.File { return os.Stdin }

func limit() error { return nil }

func limitCPU(time.Duration) {}

// used returns 0: the processor time is unknown.
func used() time.Duration { return 0 }
