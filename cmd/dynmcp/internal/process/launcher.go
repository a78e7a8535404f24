// Package process sets up this process: how much memory it takes, that it leaves no core
// file, and with whose end it ends.
package process

import (
	"os"
	"strconv"
	"strings"
)

// launchersVar names processes, by id, with whose end dynmcp is to end: the npm
// package's launcher, and npx above it. Killed with SIGKILL they can tell us
// nothing, and stdin tells nothing either, since the host still holds its other end.
const launchersVar = "DYNMCP_WRAPPERS"

// EndWithLaunchers ends dynmcp, as SIGTERM does, when a process that launchersVar
// names has ended. The variable is taken out of the environment: what we start
// ends with us. The goroutines it starts last as long as the process.
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
