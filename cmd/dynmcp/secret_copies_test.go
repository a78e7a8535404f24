package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A secret that was moved out of a config may be in copies of it: they are named by the move and by
// doctor. Copies without a secret are not.
func TestCopiesWithSecretsAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	with, without := `{"mcp":{"github":{"command":"x","env":{"GITHUB_TOKEN":"`+token+`"}}}}`, `{"mcp":{"github":{"command":"x","env":{"GITHUB_TOKEN":"${GITHUB_TOKEN}"}}}}`
	config := writeFile(t, dir, "mcp.json", with)
	named := []string{"mcp.json.bak", "mcp.json.bak.1", ".mcp.json.ABCDEFGH", ".mcp.json.bak.ABCDEFGH"}
	for _, name := range named {
		writeFile(t, dir, name, with)
	}
	silent := []string{"mcp.json.bak.2", "mcp.json.bak.3", "other.json", ".mcp.json.IJKLMNOP"}
	for _, name := range silent {
		writeFile(t, dir, name, without)
	}
	writeFile(t, dir, "other.json", with)
	writeFile(t, dir, "mcp.json.bak.3", "no config")
	env := append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "DYNMCP_KEYRING=off")
	names := func(verb, out string, ends string) {
		t.Helper()
		for _, name := range named {
			contains(t, out, filepath.Join(dir, name)+ends)
		}
		for _, name := range silent {
			lacks(t, out, filepath.Join(dir, name)+ends)
		}
		if strings.Contains(out, token) {
			t.Errorf("%s shows the secret: %s", verb, out)
		}
	}
	names("move", runVerb(t, env, 0, "secret", "move", "--secrets", "env", "--yes", "-c", config), " still has")
	names("move again", runVerb(t, env, 0, "secret", "move", "--secrets", "env", "--yes", "-c", config), " still has")
	names("doctor", strings.Join(strings.Fields(runVerb(t, env, 1, "doctor", "--no-start", "-c", config)), " "), ", a copy")
}
