//go:build e2e

package guard_test

import "testing"

// An installation that does nothing for 5 s is ended.
func TestAnInstallationThatDoesNothingIsEnded(t *testing.T) {
	t.Parallel()
	marker := newMarker(t)
	tree := start(t, "sh", "-c", `sleep $0; :`, marker)
	tree.Installing(true)
	tree.End()
	finish(t, "idle", tree, marker)
}
