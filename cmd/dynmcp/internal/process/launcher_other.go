//go:build unix && !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package process

// awaitExit cannot observe the end of a process that is not a child.
func awaitExit(int) bool { return false }
