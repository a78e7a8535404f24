package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// oddDirectory makes a directory with spaces and letters of many scripts in its name.
func oddDirectory(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{t.TempDir(), "a user's grün 日本 (1)"}, names...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A config, its .env and a recording have a path longer than the 260 characters of old
// Windows programs. The program of a server and its working directory have a path with spaces
// and letters of many scripts.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	programs := oddDirectory(t)
	program, err := os.ReadFile(mcptest.Fake(t))
	if err != nil {
		t.Fatal(err)
	}
	server := writeProgram(t, programs, "some server.exe", string(program))
	long := oddDirectory(t, strings.Repeat("lang ", 20)+"x", strings.Repeat("länger ", 20)+"x", strings.Repeat("x", 100))
	if len(long) < 300 {
		t.Fatalf("%s is too short", long)
	}
	config := filepath.Join(long, "mcp.json")
	text, err := json.Marshal(map[string]any{"mcp": map[string]any{
		"odd": map[string]any{"command": server, "cwd": programs, "env": map[string]string{"WORD": "${WORD}"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, long, "mcp.json", string(text))
	writeFile(t, long, ".env", "WORD=wörter\n")
	forms := map[string]string{"absolute": config}
	if runtime.GOOS == "windows" {
		forms["extended"] = `\\?\` + config
	}
	for name, path := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recording := filepath.Join(long, name+".jsonl")
			host := mcptest.StartDynmcp(t, "record", "-o", recording, "-c", path)
			greet(host)
			if got := use(host, "odd/cwd", nil).Text(); filepath.Clean(got) != programs {
				t.Errorf("the server runs in %q, want %q", got, programs)
			}
			if got := use(host, "odd/env", `{"name":"WORD"}`).Text(); got != "wörter" {
				t.Errorf("WORD is %q", got)
			}
			end(t, host)
			contains(t, runVerb(t, mcptest.Environ(t), 0, "inspect", recording, "--method", "tools/call"), "日本", "odd/env")
		})
	}
}
