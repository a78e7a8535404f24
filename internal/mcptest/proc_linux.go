package mcptest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Processes returns the processes with entry, NAME=VALUE, in their environment, whatever their parent
// is now. So a test finds orphans.
func Processes(entry string) []int {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	between := []byte("\x00" + entry + "\x00")
	room := make([]byte, 64<<10)
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err == nil && bytes.Contains(environment(pid, room), between) && Alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// environment returns the environment of a process, as much as fits into room, each entry between
// zeros; nil if the process is gone or of another user. Each test reads those of all processes of the
// machine, and os.ReadFile would need several slow reads for each.
func environment(pid int, room []byte) []byte {
	fd, err := syscall.Open(fmt.Sprintf("/proc/%d/environ", pid), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	room[0] = 0
	end := 1
	for end < len(room) {
		n, err := syscall.Read(fd, room[end:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			break
		}
		end += n
	}
	return room[:end]
}

// zombie reports whether a process is a zombie or gone. The state follows the command's name in
// parentheses.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	return strings.HasPrefix(strings.TrimSpace(string(rest)), "Z")
}

func commandLine(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "gone"
	}
	return string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '}))
}
