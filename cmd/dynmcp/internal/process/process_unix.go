//go:build unix

package process

import "golang.org/x/sys/unix"

// NoCore prevents core files of dynmcp, and of servers, which inherit the limit: they would
// contain every secret of the config. A server may raise the limit again.
func NoCore() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit) // lowering the soft limit is always allowed
	}
}

func terminateSelf() { _ = unix.Kill(unix.Getpid(), unix.SIGTERM) }
