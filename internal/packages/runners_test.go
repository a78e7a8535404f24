package packages

import (
	"strings"
	"testing"
)

func TestInstaller(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command string
		args    []string
		want    bool
	}{
		{"npx", []string{"-y", "some-server"}, true},
		{"/usr/bin/npx", nil, true},
		{"npx.cmd", []string{"-y", "some-server"}, true},
		{"cmd", []string{"/c", "npx", "-y", "some-server"}, true},
		{"env", []string{"A=b", "uvx", "some-server"}, true},
		{"npm", []string{"exec", "some-server"}, true},
		{"uv", []string{"run", "server.py"}, true},
		{"npm", []string{"start"}, false},
		{"npm", nil, false},
		{"node", []string{"npx"}, false},
		{"cmd", []string{"/c"}, false},
	} {
		name, _ := Installer(test.command, test.args)
		if got := name != ""; got != test.want {
			t.Errorf("%s %q: got %v, want %v", test.command, test.args, got, test.want)
		}
	}
}

func TestInstallHint(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]string{
		`npm error enoent Error: ENOENT: no such file or directory, open 'C:\Users\me\AppData\Local\npm-cache\_npx\0f\package.json'`: `C:\Users\me\AppData\Local\npm-cache\_npx\0f`,
		"ENOENT: no such file or directory, open '/home/me/project/package.json'":                                                    "",
		"npm error ETIMEDOUT": "",
	} {
		hint := InstallHint(stderr)
		if want != "" {
			want = "an earlier install of this package was cut short; remove the folder " + want + " and try again"
		}
		if hint != want {
			t.Errorf("%s: got %q, want %q", stderr, hint, want)
		}
	}
}

// A script whose interpreter is not on PATH: env of GNU, of BSD and of BusyBox.
func TestInstallHintNamesTheInterpreter(t *testing.T) {
	t.Parallel()
	for stderr, program := range map[string]string{
		"/usr/bin/env: ‘node’: No such file or directory":               "node",
		"warming up\n/usr/bin/env: 'node': No such file or directory\n": "node",
		"env: node: No such file or directory":                          "node",
		"env: python3: No such file or directory\r\n":                   "python3",
		"env: can't execute 'node': No such file or directory":          "node",
		"cat: node: No such file or directory":                          "",
		"Error: env: node: is old":                                      "",
	} {
		hint := InstallHint(stderr)
		if program == "" && hint != "" || program != "" && (!strings.Contains(hint, "it runs "+program+", ") || !strings.Contains(hint, "PATH")) {
			t.Errorf("%q: got %q", stderr, hint)
		}
	}
}
