// Package procs reads the state of processes on Linux. On other systems it finds no processes. All
// numbers of a process that has ended are 0.
package procs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Marked returns the running processes with marker, NAME=VALUE, in their environment, or VALUE in an
// argument.
func Marked(marker string) (pids []int) {
	_, value, _ := strings.Cut(marker, "=")
	for _, pid := range all() {
		env, _ := os.ReadFile(path(pid, "environ")) // a zombie has no environment
		line, _ := os.ReadFile(path(pid, "cmdline"))
		if bytes.Contains(env, []byte(marker)) || bytes.Contains(line, []byte(value)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Children returns all processes by their parents, including zombies.
func Children() map[int][]int {
	children := map[int][]int{}
	for _, pid := range all() {
		parent := Parent(pid)
		children[parent] = append(children[parent], pid)
	}
	return children
}

// Parent returns the parent of a process.
func Parent(pid int) int {
	stat, _ := os.ReadFile(path(pid, "stat"))
	// The second field may contain spaces. State and parent follow its ")".
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// Number returns the first number after a key in a file of a process, for memory in KB.
func Number(pid int, file, key string) (n int) {
	text, _ := os.ReadFile(path(pid, file))
	_, rest, _ := strings.Cut(string(text), key)
	_, _ = fmt.Sscan(rest, &n) // 0 if absent
	return n
}

// Descriptors counts the open files of a process.
func Descriptors(pid int) int {
	entries, _ := os.ReadDir(path(pid, "fd"))
	return len(entries)
}

func all() (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func path(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }
