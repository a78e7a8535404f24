package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The first start of an extension writes the config file that it names, and the model can
// read its path. Servers that are added are there at once, and the next start does not touch
// the file.
func TestFirstStartWritesAConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "config.json")
	host := mcptest.StartDynmcp(t, "--create", "-c", path)
	host.Initialize(handshake, nil)
	contains(t, catalogue(t, host), "- example: Echo, and other tools to try.", path)
	contains(t, host.Stderr(), "wrote a config with an example")
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "dynmcp.schema.json")); err != nil {
		t.Error("the schema that the config names:", err)
	}
	e := fake(t, "alpha")
	writeFile(t, filepath.Dir(path), filepath.Base(path), document([]entry{e}))
	host.WaitStderr("reloaded")
	checkEcho(t, host, "alpha/echo", `{"n":1}`)
	next := mcptest.StartDynmcp(t, "--create", "-c", path)
	next.Initialize(handshake, nil)
	lacks(t, catalogue(t, next), "example")
	contains(t, fails(t, mcptest.HostOptions{Args: []string{"--create"}}), "--create needs to be told where")
}
