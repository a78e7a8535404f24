//go:build e2e

package mcptest

import "time"

// SetWatchdog shortens the watchdog, for tests of its effect.
func SetWatchdog(d time.Duration) (restore func()) {
	old := watchdog
	watchdog = d
	return func() { watchdog = old }
}
