//go:build unix

package process

import "golang.org/x/sys/unix"

// NoCore prevents core files, which would contain every secret of the config. Servers inherit the
// limit, and may raise it again.
func NoCore() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit) // lowering the soft limit is always allowed
	}
}

func terminateSelf() { _ = unix.Kill(unix.Getpid(), unix.SIGTERM) }
