package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// What holds a home directory, or the temporary directories of all, is not given unasked.
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
	ours := t.TempDir()
	for name, c := range map[string]struct {
		server sandbox.Server
		yes    []string
		no     []string
	}{
		"the directory it runs in":        {server(func(s *sandbox.Server) { s.Dir = ours }), []string{ours}, nil},
		"our home":                        {server(func(s *sandbox.Server) { s.Dir = home }), nil, []string{home}},
		"our home, if its own is another": {server(func(s *sandbox.Server) { s.Dir, s.Env = home, []string{"HOME=" + ours} }), nil, []string{home}},
		"our home, if the entry says so":  {server(func(s *sandbox.Server) { s.Dir, s.DirSet = home, true }), []string{home}, nil},
		"the temporary directories":       {server(func(s *sandbox.Server) { s.Dir = temp }), nil, []string{temp}},
		"a program in a home directory":   {server(func(s *sandbox.Server) { s.Program = program(home, "server") }), []string{home + "/server"}, []string{home}},
		"a program among temporary files": {server(func(s *sandbox.Server) { s.Program = program(temp, "server") }), []string{temp + "/server"}, []string{temp}},
		"a program in bin":                {server(func(s *sandbox.Server) { s.Program = program(home, "bin", "server") }), []string{home + "/bin"}, []string{home}},
		"a program in .local":             {server(func(s *sandbox.Server) { s.Program = program(home, ".local", "bin", "server") }), []string{home + "/.local/bin"}, []string{home, home + "/.local"}},
		"a program of an installation":    {server(func(s *sandbox.Server) { s.Program = program(home, "venv", "bin", "server") }), []string{home + "/venv"}, []string{home}},
		"an interpreter of a version":     {server(func(s *sandbox.Server) { s.Env[1] = "PATH=" + filepath.Dir(program(home, ".nvm", "v1", "bin", "node")) }), []string{home + "/.nvm/v1"}, []string{home, home + "/.nvm"}},
		"an interpreter of a manager of shims": {server(func(s *sandbox.Server) {
			s.Env[1] = "PATH=" + filepath.Dir(program(home, ".pyenv", "shims", "python3"))
		}), []string{home + "/.pyenv"}, []string{home}},
		"paths of the entry": {server(func(s *sandbox.Server) {
			s.Read, s.Write = []string{"~/notes", "/no/./a"}, []string{"data"}
			s.Dir = ours
		}), []string{home + "/notes", "/no/a", ours}, nil},
		"terminals and the memory of processes": {server(func(*sandbox.Server) {}), nil, []string{"/dev", "/dev/pts", "/dev/shm", "/tmp", "/run", "/home", "/root", "/etc", "/var"}},
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
