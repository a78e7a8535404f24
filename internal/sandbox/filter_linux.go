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
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
}

// absent are calls that programs can do without: work that is submitted to io_uring passes
// no filter, and System V memory and messages are shared by all programs of a user.
var absent = append(slices.Clone(ring),
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL)

// attributes are calls about extended attributes, which Landlock does not limit. Programs can do
// without: many file systems have none.
var attributes = []uintptr{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_FILE_SETATTR,
	unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_GETXATTRAT,
	unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR, unix.SYS_LISTXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
}

var ring = []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// archOf maps architectures to the constants of the audit system (linux/audit.h).
var archOf = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7, "riscv64": 0xc00000f3, "loong64": 0xc0000102}

func errno(e unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

var allowed = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// filter makes a seccomp program, beside a ruleset of this version of Landlock.
func filter(p Policy, version int) ([]byte, error) {
	program, err := prologue()
	if err != nil {
		return nil, err
	}
	program = on(program, denied, errno(unix.EPERM))
	program = on(program, absent, errno(unix.ENOSYS))
	program = on(program, attributes, errno(unix.EOPNOTSUPP))
	program = deny(program, unix.SYS_PRLIMIT64, 0, bpf.JumpNotEqual, 0) // the limits of another process
	// The kernel could signal the guard.
	program = deny(program, unix.SYS_FCNTL, 1, bpf.JumpEqual, unix.F_SETOWN, unix.F_SETOWN_EX)
	program = deny(program, unix.SYS_IOCTL, 1, bpf.JumpEqual, fioSetOwn, siocSetGroup)
	// TCP Fast Open connects without a check of Landlock.
	program = deny(program, unix.SYS_SENDTO, 3, bpf.JumpBitsSet, unix.MSG_FASTOPEN)
	program = deny(program, unix.SYS_SENDMSG, 2, bpf.JumpBitsSet, unix.MSG_FASTOPEN)
	program = deny(program, unix.SYS_SENDMMSG, 3, bpf.JumpBitsSet, unix.MSG_FASTOPEN)
	program = pairs(program)
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1},
		allowed,
		bpf.LoadAbsolute{Off: offsetArg, Size: 4}) // the family
	return assemble(append(program, sockets(p, version)...))
}

// Asking returns a filter under which the kernel asks a listener about calls and, with sockets, about sockets
// of the network (seccomp_unotify(2)). It disables io_uring, whose work no filter sees.
func Asking(calls []uintptr, sockets bool) ([]byte, error) {
	program, err := prologue()
	if err != nil {
		return nil, err
	}
	program = on(program, ring, errno(unix.ENOSYS))
	ask := bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}
	program = on(program, calls, ask)
	if sockets {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1},
			allowed,
			bpf.LoadAbsolute{Off: offsetArg, Size: 4}, // the family
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
			allowed,
			ask)
	}
	return assemble(append(program, allowed))
}

// FIOSETOWN and SIOCSPGRP, which package unix lacks.
const (
	fioSetOwn    = 0x8901
	siocSetGroup = 0x8902
)

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
// the call is refused if the low word of an argument passes the test with one of the values.
func deny(program []bpf.Instruction, call uintptr, argument uint32, test bpf.JumpTest, values ...uint32) []bpf.Instruction {
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(call), SkipTrue: uint8(2 + 2*len(values))},
		bpf.LoadAbsolute{Off: offsetArg + 8*argument, Size: 4})
	for _, value := range values {
		program = append(program, bpf.JumpIf{Cond: test, Val: value, SkipFalse: 1}, errno(unix.EPERM))
	}
	return append(program, allowed)
}

// connected ends a program: only kinds of Unix sockets pass that send nothing before they are
// connected. A datagram socket sends to any address, also one of a pair.
var connected = []bpf.Instruction{
	bpf.LoadAbsolute{Off: offsetArg + 8, Size: 4}, // the type
	bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC)},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
	errno(unix.EACCES),
	allowed,
}

// pairs adds the last part of a program for socketpair(2), to one that has loaded the call's
// number.
func pairs(program []bpf.Instruction) []bpf.Instruction {
	program = append(program,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKETPAIR, SkipTrue: uint8(3 + len(connected))},
		bpf.LoadAbsolute{Off: offsetArg, Size: 4}, // the family
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		errno(unix.EACCES))
	return append(program, connected...)
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
func sockets(p Policy, version int) (program []bpf.Instruction) {
	verdict := func(family uint32, is ...bpf.Instruction) {
		program = append(append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: family, SkipTrue: uint8(len(is))}), is...)
	}
	switch {
	case version >= withResolveUnix: // Landlock limits those that are files
		verdict(unix.AF_UNIX, allowed)
	case !namesSocket(p.Write):
		verdict(unix.AF_UNIX, errno(unix.EACCES))
	case p.Network == OnlyByProxy: // the gate sees where they connect to
		verdict(unix.AF_UNIX, connected...)
	default:
		verdict(unix.AF_UNIX, allowed)
	}
	switch p.Network {
	case NoNetwork:
		if p.Traced {
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
