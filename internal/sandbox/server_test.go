package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// A directory that holds a home directory or the shared temporary directory is not granted
// implicitly.
func TestPolicy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sandbox")
	}
	home, temp := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", temp)
	program := func(path ...string) string {
		file := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	server := func(change func(s *sandbox.Server)) sandbox.Server {
		s := sandbox.Server{Name: "a", Dir: t.TempDir(), Env: []string{"HOME=" + home, "PATH=/none"}}
		change(&s)
		return s
	}
	runs := func(program string) sandbox.Server { return server(func(s *sandbox.Server) { s.Program = program }) }
	finds := func(program string) sandbox.Server {
		return server(func(s *sandbox.Server) { s.Env[1] = "PATH=" + filepath.Dir(program) })
	}
	ours := t.TempDir()
	for name, c := range map[string]struct {
		server sandbox.Server
		yes    []string
		no     []string
	}{
		"the directory it runs in":        {server(func(s *sandbox.Server) { s.Dir = ours }), []string{ours}, nil},
		"our home":                        {server(func(s *sandbox.Server) { s.Dir = home }), nil, []string{home}},
		"our home, if its own is another": {server(func(s *sandbox.Server) { s.Dir, s.Env[0] = home, "HOME="+ours }), nil, []string{home}},
		"our home, if the entry says so":  {server(func(s *sandbox.Server) { s.Dir, s.DirSet = home, true }), []string{home}, nil},
		"the temporary directories":       {server(func(s *sandbox.Server) { s.Dir = temp }), nil, []string{temp}},
		"a program in a home directory":   {runs(program(home, "server")), []string{home + "/server"}, []string{home}},
		"a program among temporary files": {runs(program(temp, "server")), []string{temp + "/server"}, []string{temp}},
		"a program in bin":                {runs(program(home, "bin", "server")), []string{home + "/bin"}, []string{home}},
		"a program in .local":             {runs(program(home, ".local", "bin", "server")), []string{home + "/.local/bin"}, []string{home, home + "/.local"}},
		"a program of an installation":    {runs(program(home, "venv", "bin", "server")), []string{home + "/venv"}, []string{home}},
		"an interpreter of a version":     {finds(program(home, ".nvm", "v1", "bin", "node")), []string{home + "/.nvm/v1"}, []string{home, home + "/.nvm"}},
		"an interpreter behind shims":     {finds(program(home, ".pyenv", "shims", "python3")), []string{home + "/.pyenv"}, []string{home}},
		"paths of the entry": {server(func(s *sandbox.Server) {
			s.Dir, s.Read, s.Write = ours, []string{"~/notes", "/no/./a"}, []string{"data"}
		}), []string{home + "/notes", "/no/a", ours + "/data"}, nil},
		"what others have": {server(func(*sandbox.Server) {}), nil, []string{"/dev", "/dev/pts", "/dev/shm", "/tmp", "/run", "/home", "/root", "/etc", "/var"}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := c.server.Policy()
			all := slices.Concat(policy.Read, policy.Write)
			for _, path := range c.yes {
				if real, _ := filepath.EvalSymlinks(path); !slices.Contains(all, path) && !slices.Contains(all, real) {
					t.Errorf("%s is not allowed: %v", path, all)
				}
			}
			for _, path := range c.no {
				if slices.Contains(all, path) {
					t.Errorf("%s is allowed", path)
				}
			}
		})
	}
}

// A runner may change the directories that it installs into; npx only the folder of its package.
func TestRunnersPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		runner, pkg string
		want        []string
	}{
		"none":               {"", "", nil},
		"uvx":                {"uvx", "", []string{"/no/.cache/uv", "/no/.local/share/uv"}},
		"npm":                {"npm", "", []string{"/no/.cache/node-gyp", "/no/.npm"}},
		"npx with a package": {"npx", "exa-mcp-server@3.4.1", []string{"/no/.cache/node-gyp", "/no/.npm/_cacache", "/no/.npm/_logs", "/no/.npm/_npx/f38053b63df93bd4"}},
	} {
		policy := sandbox.Server{Name: "a", Env: []string{"HOME=/no"}, Runner: c.runner, Package: c.pkg}.Policy()
		got := slices.DeleteFunc(policy.Write, func(path string) bool { return !strings.HasPrefix(path, "/no/") })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
