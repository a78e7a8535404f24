//go:build !windows

package guard

import "os/exec"

// Batch does nothing: only Windows has batch files.
func Batch(*exec.Cmd) error { return nil }
