//go:build !linux

package guard

import "time"

// InstallLimit is how long a tree that installs may continue after it was asked to end,
// whether it works or not.
const InstallLimit = 15 * time.Second

// Installing does nothing: after a SIGKILL of this process nobody can wait, and otherwise the
// caller does.
func (t *Tree) Installing(bool) {}

// End does nothing: the caller waits for InstallLimit, and then ends the tree.
func (t *Tree) End() {}
