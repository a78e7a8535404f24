package main_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// TestEditScripts runs the verbs that write files, in scripts like the session of a shell.
// UPDATE_SCRIPTS=1 updates the output in them.
func TestEditScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts have paths with slashes, links and modes")
	}
	t.Parallel()
	bin := filepath.Dir(mcptest.Dynmcp(t))
	registry := serveRegistry(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cli2",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"save": save},
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("PATH", filepath.Dir(mcptest.Fake(t))+string(os.PathListSeparator)+bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("BIN", bin)
			env.Setenv("REGISTRY", registry.URL)
			for _, name := range []string{"HOME", "USERPROFILE", "APPDATA"} {
				env.Setenv(name, home)
			}
			return os.MkdirAll(home, 0o777)
		},
	})
}

// save copies stdout, stderr or another file into the file saved, with $WORK in place of the
// script's directory and $REGISTRY in place of the registry's address.
func save(ts *testscript.TestScript, _ bool, args []string) {
	work := ts.Getenv("WORK")
	text := strings.ReplaceAll(ts.ReadFile(args[0]), work, "$WORK")
	text = strings.ReplaceAll(text, ts.Getenv("REGISTRY"), "$REGISTRY")
	ts.Check(os.WriteFile(filepath.Join(work, "saved"), []byte(text), 0o666))
}
