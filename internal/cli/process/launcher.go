// Package process configures this process: its use of memory, its core files, and the processes with
// which it ends.
package process

import (
	"os"
	"strconv"
	"strings"
)

// launchersVar lists the ids of processes with which dynmcp ends: the npm package's launcher, and npx
// above it. A killed launcher cannot notify dynmcp, and stdin stays open, because the host holds its
// other end.
const launchersVar = "DYNMCP_WRAPPERS"

// EndWithLaunchers ends dynmcp, as SIGTERM does, when a process in launchersVar has ended. It removes
// the variable from the environment, because children end with dynmcp anyway. Its goroutines run
// until the process ends.
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
