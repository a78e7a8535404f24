//go:build unix

package main_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A person on a terminal is asked which operations become tools.
func TestAddAsksForTheTags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answers []string
		filter  string
	}{
		{[]string{"nothing", "Store, 1"}, `"tool_filter": ["getOrder", "listPets", "addPet"]`},
		{[]string{"3"}, `"tool_filter": ["getOrder"]`},
		{[]string{""}, ""},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "mcp.json", `{"mcp": {}}`)
		writeFile(t, dir, "pets.yaml", `openapi: 3.0.3
info: {title: Pets, version: '1.0'}
paths:
  /pets:
    get: {operationId: listPets, tags: [pets]}
    post: {operationId: addPet, tags: [pets]}
  /order:
    get: {operationId: getOrder, tags: [store]}
  /owner:
    get: {operationId: getOwner, tags: [shelter]}
`)
		cmd := exec.Command(mcptest.Dynmcp(t), "add", "pets", "--openapi", "pets.yaml", "--url", "http://127.0.0.1:1/v1")
		cmd.Dir = dir
		cmd.Env = append(mcptest.Environ(t), "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "DYNMCP_KEYRING=off", "TERM=dumb")
		screen := onTerminal(t, cmd)
		screen.waitFor("  1 pets ")
		screen.waitFor("  3 store ")
		for _, answer := range test.answers {
			screen.waitFor("Which tags?")
			screen.types(answer + "\n")
		}
		screen.waitFor(`Added "pets"`)
		screen.waitFor("Start it now to list them?")
		screen.types("n\n")
		if err := screen.wait(); err != nil {
			t.Fatalf("%v\n%s", err, screen.text())
		}
		contains(t, readFile(t, filepath.Join(dir, "mcp.json")), test.filter, `"openapi": `)
	}
}
