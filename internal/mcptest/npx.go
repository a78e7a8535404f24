package mcptest

import (
	"os"
	"os/exec"
	"testing"
)

// Npx returns the command that runs an npm package, with its arguments. Without
// npx on the machine the test is skipped; where CI is "true" or
// DYNMCP_REQUIRE_NPX is "1" it fails instead, so that a pipeline cannot lose
// these tests unseen.
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
