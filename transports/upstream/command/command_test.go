package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
)

func TestEnvironment(t *testing.T) {
	t.Setenv("DYNMCP_TEST_A", "a")
	t.Setenv("DYNMCP_TEST_B", "b")
	own := map[string]string{"OWN": "1"}
	for _, test := range []struct {
		inherit schema.Inherit
		a, b    bool
	}{
		{schema.Inherit{}, true, true},
		{schema.Inherit{None: true}, false, false},
		{schema.Inherit{Names: []string{"DYNMCP_TEST_B", "DYNMCP_TEST_NOWHERE"}}, false, true},
	} {
		env := Environment(own, test.inherit)
		has := func(entry string) bool { return slices.Contains(env, entry) }
		if has("DYNMCP_TEST_A=a") != test.a || has("DYNMCP_TEST_B=b") != test.b || !has("OWN=1") || !has("PATH="+os.Getenv("PATH")) || has("DYNMCP_TEST_NOWHERE=") {
			t.Errorf("%+v: got %q", test.inherit, env)
		}
	}
}

// A command is looked up in the directory and on the PATH of the entry.
func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "bin", "dynmcp-test-command.bat")
	if err := os.Mkdir(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(script)
	for _, test := range []struct {
		command, dir string
		env          []string
		found        bool
	}{
		{script, "", nil, true},
		{filepath.Join("bin", name), dir, nil, true},
		{filepath.Join("bin", name), "", nil, false},
		{name, dir, nil, false},
		{name, "", []string{"PATH=" + filepath.Dir(script)}, true},
		{name, "", []string{"PATH=" + dir + string(filepath.ListSeparator) + filepath.Dir(script)}, true},
		{name, "", []string{"PATH=" + dir}, false},
	} {
		got, err := Find(test.command, test.dir, test.env)
		if test.found != (err == nil) || test.found && !strings.HasSuffix(got, name) {
			t.Errorf("%s in %q with %q: got %s, %v", test.command, test.dir, test.env, got, err)
		}
	}
}
