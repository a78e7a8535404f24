//go:build unix

package main

import "golang.org/x/sys/unix"

// noCore keeps us, and the servers that inherit it, from leaving core files:
// they would hold every secret of the config. A server may raise the limit again.
func noCore() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit) // lowering the soft limit is always allowed
	}
}
