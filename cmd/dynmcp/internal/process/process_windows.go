package process

import "os"

// NoCore does nothing: there are no core files here.
func NoCore() {}

// terminateSelf ends us at once: there is no SIGTERM here, and the job objects of
// the servers end with us.
func terminateSelf() { os.Exit(1) }
