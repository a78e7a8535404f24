package sandbox

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArg    = 16 // of the first argument; the others follow, 8 bytes each, low word first
)

// x32Bit marks the calls of the x32 ABI, which shares the architecture of x86-64.
const x32Bit = 0x40000000

// denied are calls that no server needs and that bypass the limits: they reach other
// processes, other mounts, the kernel and its keys.
var denied = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
}

// absent are calls that programs can do without: work that is submitted to io_uring passes
// no filter, and System V memory and messages are shared by all programs of a user.
var absent = append(slices.Clone(ring),
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL)

var ring = []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// archOf maps architectures to the constants of the audit system (linux/audit.h).
var archOf = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7, "riscv64": 0xc00000f3, "loong64": 0xc0000102}

func errno(e unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

var allowed = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// filter makes a seccomp program. noUnixSockets refuses Unix sockets: before version 9,
// Landlock cannot limit those that are files.
func filter(p Policy, noUnixSockets bool) ([]byte, error) {
	program, err := prologue()
	if err != nil {
		return nil, err
	}
	program = on(program, denied, errno(unix.EPERM))
	program = on(program, absent, errno(unix.ENOSYS))
	program = deny(program, unix.SYS_PRLIMIT64, 0, bpf.JumpNotEqual, 0)         // the limits of another process
	program = deny(program, unix.SYS_FCNTL, 1, bpf.JumpEqual, unix.F_SETOWN_EX) // the kernel could signal the guard
	// TCP Fast Open connects without a check of Landlock.
	program = deny(program, unix.SYS_SENDTO, 3, bpf.JumpBitsSet, unix.MSG_FASTOPEN)
	program = deny(program, unix.SYS_SENDMSG, 2, bpf.JumpBitsSet, unix.MSG_FASTOPEN)
	program = deny(program, unix.SYS_SENDMMSG, 3, bpf.JumpBitsSet, unix.MSG_FASTOPEN)
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1},
		allowed,
		bpf.LoadAbsolute{Off: offsetArg, Size: 4}) // the family
	return assemble(append(program, sockets(p, noUnixSockets)...))
}

// prologue begins a program: it rejects calls of other architectures, and loads the number of
// the call.
func prologue() ([]bpf.Instruction, error) {
	arch, ok := archOf[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("sandboxes are not available on %s", runtime.GOARCH)
	}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		errno(unix.ENOSYS),
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
		errno(unix.ENOSYS),
	}, nil
}

// on adds a verdict for some calls to a program that has loaded a call's number. It uses bisection,
// because the kernel runs a filter on every possible call when it is installed.
func on(program []bpf.Instruction, calls []uintptr, verdict bpf.Instruction) []bpf.Instruction {
	return append(program, bisect(slices.Sorted(slices.Values(calls)), verdict)...)
}

func bisect(calls []uintptr, verdict bpf.Instruction) (program []bpf.Instruction) {
	if len(calls) <= 4 {
		for _, call := range calls {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(call), SkipTrue: 1}, verdict)
		}
		return program
	}
	low, high := bisect(calls[:len(calls)/2], verdict), bisect(calls[len(calls)/2:], verdict)
	program = append(program, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(calls[len(calls)/2]), SkipTrue: uint8(len(low) + 1)})
	program = append(append(program, low...), bpf.Jump{Skip: uint32(len(high))})
	return append(program, high...)
}

// deny adds the last part of a program for a call, to one that has loaded the call's number:
// the call is refused if the low word of an argument passes the test.
func deny(program []bpf.Instruction, call uintptr, argument uint32, test bpf.JumpTest, value uint32) []bpf.Instruction {
	return append(program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(call), SkipTrue: 4},
		bpf.LoadAbsolute{Off: offsetArg + 8*argument, Size: 4},
		bpf.JumpIf{Cond: test, Val: value, SkipFalse: 1},
		errno(unix.EPERM),
		allowed)
}

// assemble returns a program in the kernel's format.
func assemble(program []bpf.Instruction) ([]byte, error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, i := range raw {
		text = binary.NativeEndian.AppendUint16(text, i.Op)
		text = append(text, i.Jt, i.Jf)
		text = binary.NativeEndian.AppendUint32(text, i.K)
	}
	return text, nil
}

// sockets decides on socket(2), whose family is loaded.
func sockets(p Policy, noUnix bool) (program []bpf.Instruction) {
	verdict := func(family uint32, is bpf.Instruction) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: family, SkipTrue: 1}, is)
	}
	if noUnix {
		verdict(unix.AF_UNIX, errno(unix.EACCES))
	} else {
		verdict(unix.AF_UNIX, allowed)
	}
	switch p.Network {
	case NoNetwork:
		if p.traced {
			verdict(unix.AF_INET, allowed)
			verdict(unix.AF_INET6, allowed)
		}
	case AllNetwork:
		verdict(unix.AF_INET, allowed)
		verdict(unix.AF_INET6, allowed)
		verdict(unix.AF_NETLINK, allowed) // lists the addresses of this machine
	case OnlyByProxy:
		verdict(unix.AF_NETLINK, allowed)
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
			errno(unix.EACCES),
			bpf.LoadAbsolute{Off: offsetArg + 8, Size: 4}, // the type
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC)},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1},
			errno(unix.EACCES),
			bpf.LoadAbsolute{Off: offsetArg + 16, Size: 4}, // the protocol: Landlock does not limit MPTCP or SCTP
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
			errno(unix.EACCES),
			allowed)
	}
	return append(program, errno(unix.EACCES))
}
