//go:build unix && !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package process

// awaitExit returns false, because this system cannot observe processes that are not children.
func awaitExit(int) bool { return false }
