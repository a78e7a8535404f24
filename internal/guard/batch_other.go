//go:build !windows

package guard

import "os/exec"

// Batch does nothing: only Windows has batch files.
func Batch(*exec.Cmd) error { return nil }

// Outlive does nothing: what is not started by Start lives on elsewhere.
func Outlive(*exec.Cmd) {}
