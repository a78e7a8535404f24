//go:build !unix

package main

import "os/exec"

// setsid has no meaning here.
func setsid(*exec.Cmd) {}
