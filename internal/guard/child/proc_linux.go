package child

import (
	"os"
	"strconv"
	"syscall"
)

// Info describes a process, from /proc.
type Info struct {
	Pid     int
	Session int
	Started int64 // in clock ticks since the machine was started
	Ticks   int64 // processor time, including reaped children
}

// Children returns the children of this process, zombies included. The kernel's own list,
// /proc/PID/task/TID/children, is not built into every kernel. An error means that some may
// be missing.
func Children() ([]Info, error) {
	return processes(func(fields []string) bool { return number(fields[1]) == int64(os.Getpid()) })
}

// processes returns the processes that picked selects by the fields of proc_pid_stat(5)
// from number 3 on. An error means that some may be missing.
func processes(picked func(fields []string) bool) ([]Info, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, err
	}
	var all []Info
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		stat, err := readFile("/proc/" + name + "/stat")
		switch err {
		case nil:
		case syscall.ENOENT, syscall.ESRCH, syscall.EACCES:
			continue // gone, or not visible to us
		default:
			return nil, err
		}
		fields := statFields(stat)
		if len(fields) < 20 || !picked(fields) {
			continue
		}
		p := Info{Pid: pid, Session: int(number(fields[3])), Started: number(fields[19])}
		for _, ticks := range fields[11:15] {
			p.Ticks += number(ticks)
		}
		all = append(all, p)
	}
	return all, nil
}

// statFields returns the fields after the command's name, which is in parentheses and may
// contain any byte.
func statFields(stat []byte) []string {
	for i := len(stat) - 2; i >= 0; i-- {
		if stat[i] == ')' {
			return split(stat[i+2:], ' ')
		}
	}
	return nil
}

// split returns the parts of text, each ended by the separator or the end of text.
func split(text []byte, separator byte) []string {
	var parts []string
	start := 0
	for i, c := range text {
		if c == separator {
			parts = append(parts, string(text[start:i]))
			start = i + 1
		}
	}
	if start < len(text) {
		parts = append(parts, string(text[start:]))
	}
	return parts
}

func number(field string) int64 {
	n, _ := strconv.ParseInt(field, 10, 64)
	return n
}

// readFile is os.ReadFile for files that never block: it avoids the poller, and its errors
// are a syscall.Errno.
func readFile(name string) (text []byte, err error) {
	fd, err := again(func() (int, error) { return syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	return readAll(fd)
}

// readAll reads a file to its end and closes it.
func readAll(fd int) (text []byte, err error) {
	defer func() { _ = syscall.Close(fd) }()
	for {
		if len(text) == cap(text) {
			text = append(make([]byte, 0, 2*cap(text)+4096), text...)
		}
		n, err := again(func() (int, error) { return syscall.Read(fd, text[len(text):cap(text)]) })
		if n <= 0 || err != nil {
			return text, err
		}
		text = text[:len(text)+n]
	}
}

// again repeats a system call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return n, err
		}
	}
}
