package box_test

import (
	"encoding/binary"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// noLandlock returns a filter under which the kernel seems to have no Landlock.
func noLandlock() (text []byte, err error) {
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number of the call
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_LANDLOCK_CREATE_RULESET, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	for _, i := range raw {
		text = append(binary.NativeEndian.AppendUint16(text, i.Op), i.Jt, i.Jf)
		text = binary.NativeEndian.AppendUint32(text, i.K)
	}
	return text, err
}
