package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Doctor names args in which a shell would have replaced ~, and its hint is right.
func TestDoctorNamesHomeInArgs(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "mcp.json")
	doctor := func(args string) string {
		t.Helper()
		text := `{"mcp": {"s": {"command": "` + filepath.ToSlash(os.Args[0]) + `", "args": [` + args + `]}}}`
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return runVerb(t, os.Environ(), 0, "doctor", "--no-start", "-c", config)
	}
	contains(t, doctor(`"~/work", "--at=~/x", "a~b", "~root"`), `its arg "~/work"`, `write "${HOME}/work"`, `its arg "--at=~/x"`, `write "--at=${HOME}/x"`)
	if got := doctor(`"${HOME}/work", "--at=${HOME}/x", "a~b", "~root", "a=~b"`); strings.Contains(got, "its arg") {
		t.Errorf("got %s", got)
	}
}
