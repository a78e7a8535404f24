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

// A ~ that a shell would replace is the home of the user in the command and the directory; any
// other is part of a name.
func TestHomeInPaths(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	if err := os.MkdirAll(filepath.Join(home, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "bin", "server.bat"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		command, cwd string
		found        bool
	}{
		{"~/bin/server.bat", "", true},
		{"~/bin/server.bat", "~", true},
		{"bin/server.bat", "~/", true},
		{"./server.bat", "~/bin", true},
		{"~root/bin/server.bat", "", false},
		{"x~/bin/server.bat", "", false},
		{"~/bin/server.bat", "~/none", false},
		{"~", "", false},
	} {
		server := schema.Server{Name: "up", Command: test.command, Cwd: test.cwd}
		if err := Check(server); (err == nil) != test.found {
			t.Errorf("%s in %q: got %v", test.command, test.cwd, err)
		}
	}
	if s := AtHome(schema.Server{Command: "~root/x", Cwd: "a/~"}); s.Command != "~root/x" || s.Cwd != "a/~" {
		t.Errorf("got %s, %s", s.Command, s.Cwd)
	}
}
