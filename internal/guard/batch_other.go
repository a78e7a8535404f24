//go:build !windows

package guard

import "os/exec"

// Batch does nothing: only Windows has batch files.
func Batch(*exec.Cmd) error { return nil }

// Outlive does nothing: on this system only commands of Start end with this process.
func Outlive(*exec.Cmd) {}
