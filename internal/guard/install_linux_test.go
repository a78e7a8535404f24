package guard_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func init() { roles["install"] = install }

// installer works for longer than an end otherwise takes, and then makes the file $1. $0 is a
// marker.
const installer = `i=0; while [ $((i+=1)) -le 30 ]; do sleep 0.05; done; : > "$1"; : $0`

func TestAnEndWaitsForAnInstallation(t *testing.T) {
	t.Parallel()
	file, marker := filepath.Join(t.TempDir(), "done"), newMarker(t)
	tree := start(t, "sh", "-c", installer, marker, file)
	tree.Installing(true)
	tree.End()
	finish(t, "installer", tree, marker)
	if _, err := os.Stat(file); err != nil {
		t.Error("it was ended in the middle")
	}
}

// Not in parallel: the guard that is left becomes an orphan of this process, and other tests
// kill those.
func TestOurDeathWaitsForAnInstallation(t *testing.T) {
	file, marker := filepath.Join(t.TempDir(), "done"), newMarker(t)
	cmd, out := asRole(t, "install", marker, file)
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "nothing is left", func() bool { return len(marked(marker)) == 0 })
	if _, err := os.Stat(file); err != nil {
		t.Error("it was ended in the middle")
	}
}

// install starts an installer and waits for its own end.
func install() {
	tree := startShell(installer, os.Args[1], os.Args[2])
	tree.Installing(true)
	os.Stdout.WriteString(".")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAnInstallationThatIsOverIsEnded(t *testing.T) {
	t.Parallel()
	file, marker := filepath.Join(t.TempDir(), "done"), newMarker(t)
	tree := start(t, "sh", "-c", `while :; do sleep 0.05; done; : $0`, marker, file)
	tree.Installing(true)
	tree.Installing(false)
	tree.End()
	finish(t, "server", tree, marker)
}

func TestKillDoesNotWaitForAnInstallation(t *testing.T) {
	t.Parallel()
	marker := newMarker(t)
	tree := start(t, "sh", "-c", `while :; do sleep 0.05; done; : $0`, marker)
	tree.Installing(true)
	tree.End()
	tree.Kill()
	finish(t, "installer", tree, marker)
}
