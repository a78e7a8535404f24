package mcptest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Processes returns the processes whose environment holds entry, NAME=VALUE,
// whoever their parent is now. It is how a test finds orphans. Elsewhere than on
// Linux it finds none.
func Processes(entry string) []int {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err == nil && carries(pid, entry) && Alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func carries(pid int, entry string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false // gone, or not ours
	}
	return slices.ContainsFunc(bytes.Split(env, []byte{0}), func(e []byte) bool { return string(e) == entry })
}

// zombie reads the state, which follows the command's name in parentheses.
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
