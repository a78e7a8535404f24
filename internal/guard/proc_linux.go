package guard

import (
	"bytes"
	"os"
	"strconv"
)

// A process is what /proc says of one.
type process struct {
	pid     int
	session int
	started int64 // in clock ticks since the machine was started
	ticks   int64 // of processor time that it and its reaped children had
}

// children returns the processes whose parent we are, zombies included. The
// kernel's own list, /proc/PID/task/TID/children, is not built into every
// kernel. An error says that some may be missing.
func children() ([]process, error) {
	return processes(func(fields [][]byte) bool { return number(fields[1]) == int64(os.Getpid()) })
}

// processes returns the processes that are picked by the fields of
// proc_pid_stat(5) from number 3 on. An error says that some may be missing.
func processes(picked func(fields [][]byte) bool) ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, err
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if isShortage(err) {
			return nil, err
		}
		// The fields that follow the command's name, which stands in
		// parentheses and may hold any byte.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 20 || !picked(fields) {
			continue // gone, or not asked for
		}
		p := process{pid: pid, session: int(number(fields[3])), started: number(fields[19])}
		for _, ticks := range fields[11:15] {
			p.ticks += number(ticks)
		}
		all = append(all, p)
	}
	return all, nil
}

func number(field []byte) int64 {
	n, _ := strconv.ParseInt(string(field), 10, 64)
	return n
}
