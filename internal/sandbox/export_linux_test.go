package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// NoLandlock returns a filter under which the kernel seems to have no Landlock.
func NoLandlock() ([]byte, error) {
	return assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_LANDLOCK_CREATE_RULESET, SkipTrue: 1},
		errno(unix.ENOSYS),
		allowed,
	})
}
