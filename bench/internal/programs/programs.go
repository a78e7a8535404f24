// Package programs builds what a benchmark starts.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build makes a directory and builds packages into it, as releases are built and each
// under the last element of its path. dynmcp keeps things between runs in StateHome of
// it from then on: what earlier runs listed has no part in a measurement.
func Build(packages ...string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "dynmcp-bench"); err != nil {
		return "", err
	}
	if err := os.Setenv("XDG_STATE_HOME", StateHome(dir)); err != nil {
		return dir, err
	}
	cmd := exec.Command("go", append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
}

// StateHome is where what was built keeps things between runs.
func StateHome(dir string) string { return filepath.Join(dir, "state") }
