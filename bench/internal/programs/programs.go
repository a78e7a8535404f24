// Package programs builds the programs of benchmarks.
package programs

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds main packages, whose paths are relative to the root, into a new directory, with the
// flags of releases and each under the last element of its path. It sets dynmcp's state directory to
// StateHome of the new directory, so that listings of earlier runs do not affect measurements.
func Build(packages ...string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "dynmcp-bench"); err != nil {
		return "", err
	}
	if err := os.Setenv("XDG_STATE_HOME", StateHome(dir)); err != nil {
		return dir, err
	}
	ours, benches := []string{"build", "-o", dir + string(filepath.Separator)}, []string{"-C", "bench", "build", "-o", dir + string(filepath.Separator)}
	for _, pkg := range packages {
		if bench, ok := strings.CutPrefix(pkg, "./bench/"); ok {
			benches = append(benches, "./"+bench)
		} else {
			ours = append(ours, pkg)
		}
	}
	if err := Go(nil, ours...); err != nil {
		return dir, err
	}
	if len(packages) == len(ours)-3 {
		return dir, nil
	}
	return dir, Go(nil, benches...)
}

// Go runs the go command with the environment of releases and additional variables.
func Go(env []string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Source extracts the files of a commit of this repository below dir, and returns their directory.
func Source(dir, commit string) (source string, err error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return "", fmt.Errorf("commit %s is of the history of this repository, which is not here: %w", commit, err)
	}
	if _, err := git("rev-parse", "--verify", "--quiet", commit+"^{commit}"); err != nil {
		if shallow, _ := git("rev-parse", "--is-shallow-repository"); shallow == "true" {
			return "", fmt.Errorf("commit %s is not in this clone, which has the last commits alone: git fetch --unshallow --tags", commit)
		}
		return "", fmt.Errorf("commit %s is not in this clone", commit)
	}
	archive := filepath.Join(dir, "source.zip")
	source = filepath.Join(dir, "source")
	if _, err := git("-C", root, "archive", "--output", archive, commit); err != nil {
		return "", fmt.Errorf("git archive %s: %w", commit, err)
	}
	files, err := zip.OpenReader(archive)
	if err != nil {
		return "", err
	}
	defer files.Close()
	return source, os.CopyFS(source, files)
}

// StateHome returns the state directory of the programs that Build has built in dir.
func StateHome(dir string) string { return filepath.Join(dir, "state") }

// EnterRoot changes the working directory to the root of the repository. Later paths, also in flags,
// are relative to it.
func EnterRoot() error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("go list -m %s: %w", module, err)
	}
	return os.Chdir(strings.TrimSpace(string(out)))
}

// module is the path of dynmcp's module.
const module = "github.com/dynmcp/dynmcp"
