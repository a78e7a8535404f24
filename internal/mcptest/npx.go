package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Npx returns the command that runs an npm package, with its arguments. Without npx the test is
// skipped, or fails if CI is "true" or DYNMCP_REQUIRE_NPX is "1", so that no pipeline skips these
// tests unnoticed.
func Npx(t testing.TB, pkg ...string) []string {
	t.Helper()
	path, err := exec.LookPath("npx")
	if err == nil {
		return append([]string{path, "-y"}, pkg...)
	}
	if os.Getenv("CI") == "true" || os.Getenv("DYNMCP_REQUIRE_NPX") == "1" {
		t.Fatalf("this test runs %v and needs npx: %v", pkg, err)
	}
	t.Skipf("npx is not on PATH, so %v is not tested; DYNMCP_REQUIRE_NPX=1 makes this a failure", pkg)
	return nil
}

// Npm returns the command that runs the program of an npm package in node, with its arguments. npx,
// which is required as for Npx, is called once to find the package: at each start it would take
// longer than most servers.
func Npm(t testing.TB, pkg string, args ...string) []string {
	t.Helper()
	npx := Npx(t, "--package="+pkg, "--call=node -p process.env.PATH")
	find, _ := npmPrograms.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		cmd := exec.Command(npx[0], npx[1:]...)
		cmd.Dir, cmd.Env = t.TempDir(), Environ(t)
		path, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%q: %w", npx, err)
		}
		return npmProgram(strings.TrimSpace(string(path)), pkg)
	}))
	program, err := find.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"node", program}, args...)
}

// npmPrograms has a func() (string, error) by package.
var npmPrograms sync.Map

// npmProgram returns the only program of a package, NAME or NAME@VERSION. path is the PATH of npx, with
// the node_modules/.bin of the package.
func npmProgram(path, pkg string) (string, error) {
	name := pkg
	if at := strings.LastIndex(pkg, "@"); at > 0 { // the first @ may be a scope's
		name = pkg[:at]
	}
	for _, bin := range filepath.SplitList(path) {
		dir := filepath.Join(filepath.Dir(bin), filepath.FromSlash(name))
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			continue
		}
		var document struct{ Bin map[string]string }
		if err := json.Unmarshal(text, &document); err != nil || len(document.Bin) != 1 {
			return "", fmt.Errorf("package.json of %s names %d programs, want one (%v)", pkg, len(document.Bin), err)
		}
		for _, program := range document.Bin {
			return filepath.Join(dir, filepath.FromSlash(program)), nil
		}
	}
	return "", fmt.Errorf("npx has no %s on its path %q", pkg, path)
}
