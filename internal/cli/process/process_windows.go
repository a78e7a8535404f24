package process

import "os"

// NoCore does nothing, because Windows has no core files.
func NoCore() {}

// terminateSelf exits at once, because Windows has no SIGTERM. The job objects of the servers end
// with the process.
func terminateSelf() { os.Exit(1) }
