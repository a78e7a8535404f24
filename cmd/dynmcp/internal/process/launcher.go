// Package process configures this process: its use of memory, no core files, and the processes
// with which it ends.
package process

import (
	"os"
	"strconv"
	"strings"
)

// launchersVar lists processes, by id, whose end also ends dynmcp: the npm package's launcher,
// and npx above it. If they are killed with SIGKILL they cannot notify dynmcp, and stdin stays
// open, because the host still holds its other end.
const launchersVar = "DYNMCP_WRAPPERS"

// EndWithLaunchers ends dynmcp, as SIGTERM does, when a process in launchersVar has ended. The
// variable is removed from the environment, because children end with dynmcp. The goroutines it
// starts last as long as the process.
func EndWithLaunchers() {
	pids := os.Getenv(launchersVar)
	_ = os.Unsetenv(launchersVar)
	for field := range strings.FieldsSeq(pids) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		go func() {
			if awaitExit(pid) {
				terminateSelf()
			}
		}()
	}
}
