package box_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/modules/sandbox/box"
)

// A directory that holds a home directory or the shared temporary directory is not granted
// implicitly.
func TestPolicy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sandbox")
	}
	there, temp := t.TempDir(), t.TempDir()
	home := filepath.Join(t.TempDir(), "home") // as where /home is a link to /var/home
	if err := os.Symlink(there, home); err != nil {
		t.Fatal(err)
	}
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
	server := func(change func(s *box.Server)) box.Server {
		s := box.Server{Name: "a", Dir: t.TempDir(), Env: []string{"HOME=" + home, "PATH=/none"}}
		change(&s)
		return s
	}
	runs := func(program string) box.Server { return server(func(s *box.Server) { s.Program = program }) }
	finds := func(program string) box.Server {
		return server(func(s *box.Server) { s.Env[1] = "PATH=" + filepath.Dir(program) })
	}
	for name, text := range map[string]string{
		"venv/pyvenv.cfg": "", "venv/lib/x": "", "venv/pip.conf": "", ".nvm/v1/lib/x": "", ".pyenv/versions/x": "", ".local/share/x": "", "Documents/share/x": "",
		"pkg/package.json": `{"name": "pkg"}`, "project/pyproject.toml": "", "downloads/package.json": `{"dependencies": {}}`, "package.json": `{"name": "home"}`,
	} {
		if err := os.WriteFile(program(home, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := t.TempDir()
	for name, c := range map[string]struct {
		server box.Server
		yes    []string
		no     []string
	}{
		"the directory it runs in":         {server(func(s *box.Server) { s.Dir = ours }), []string{ours}, nil},
		"our home":                         {server(func(s *box.Server) { s.Dir = home }), nil, []string{home}},
		"our home, if its own is another":  {server(func(s *box.Server) { s.Dir, s.Env[0] = home, "HOME="+ours }), nil, []string{home}},
		"our home, if the entry says so":   {server(func(s *box.Server) { s.Dir, s.DirSet = home, true }), []string{home}, nil},
		"the temporary directories":        {server(func(s *box.Server) { s.Dir = temp }), nil, []string{temp}},
		"a program in a home directory":    {runs(program(home, "server")), []string{home + "/server"}, []string{home}},
		"a program among temporary files":  {runs(program(temp, "server")), []string{temp + "/server"}, []string{temp}},
		"a program among documents":        {runs(program(home, "Documents", "server")), []string{home + "/Documents/server"}, []string{home + "/Documents"}},
		"a program in bin":                 {runs(program(home, "bin", "server")), []string{home + "/bin/server"}, []string{home, home + "/bin"}},
		"a program in bin among documents": {runs(program(home, "Documents", "bin", "server")), []string{home + "/Documents/bin/server"}, []string{home + "/Documents", home + "/Documents/bin"}},
		"a program in .local":              {runs(program(home, ".local", "bin", "server")), []string{home + "/.local/bin/server"}, []string{home + "/.local", home + "/.local/share", home + "/.local/bin"}},
		"a program of cargo":               {runs(program(home, ".cargo", "bin", "server")), []string{home + "/.cargo/bin/server"}, []string{home + "/.cargo", home + "/.cargo/bin"}},
		"a program of an environment": {runs(program(home, "venv", "bin", "server")),
			[]string{home + "/venv/bin", home + "/venv/lib", home + "/venv/pyvenv.cfg"}, []string{home + "/venv", home + "/venv/pip.conf"}},
		"a program of a package":      {runs(program(home, "pkg", "dist", "server.js")), []string{home + "/pkg"}, []string{home}},
		"a program of a project":      {runs(program(home, "project", "server.py")), []string{home + "/project"}, []string{home}},
		"a program among its modules": {runs(program(home, "app", "node_modules", "a", "dist", "server.js")), []string{home + "/app/node_modules"}, []string{home + "/app"}},
		"a package.json of nothing":   {runs(program(home, "downloads", "server")), []string{home + "/downloads/server"}, []string{home + "/downloads"}},
		"a package that is our home":  {runs(program(home, "src", "server")), []string{home + "/src/server"}, []string{home, home + "/src"}},
		"an interpreter of a version": {finds(program(home, ".nvm", "v1", "bin", "node")), []string{home + "/.nvm/v1/bin/node", home + "/.nvm/v1/lib"}, []string{home + "/.nvm", home + "/.nvm/v1"}},
		"an interpreter behind shims": {finds(program(home, ".pyenv", "shims", "python3")), []string{home + "/.pyenv/shims", home + "/.pyenv/versions"}, []string{home, home + "/.pyenv"}},
		"a cache that is our home":    {server(func(s *box.Server) { s.Env = append(s.Env, "UV_CACHE_DIR="+home, "PNPM_HOME="+there) }), nil, []string{home}},
		"the passwords of registries": {server(func(s *box.Server) { s.Runner = "uvx" }), nil,
			[]string{home + "/.npmrc", home + "/.config/uv", home + "/.config/pip", home + "/.local/share/uv", home + "/.local/share/uv/credentials"}},
		"paths of the entry": {server(func(s *box.Server) {
			s.Dir, s.Read, s.Write = ours, []string{"~/notes", "/no/./a"}, []string{"data"}
		}), []string{home + "/notes", "/no/a", ours + "/data"}, nil},
		"what others have": {server(func(*box.Server) {}), nil, []string{"/dev", "/dev/pts", "/dev/shm", "/tmp", "/run", "/home", "/root", "/etc", "/var"}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := c.server.Policy()
			all := slices.Concat(policy.Read, policy.Write)
			real := make([]string, len(all))
			for i, path := range all {
				if real[i] = path; !slices.Contains(slices.Concat(box.System(), box.Devices()), path) {
					real[i], _ = filepath.EvalSymlinks(path)
				}
			}
			for _, path := range c.yes {
				if real, _ := filepath.EvalSymlinks(path); !slices.Contains(all, path) && !slices.Contains(all, real) {
					t.Errorf("%s is not allowed: %v", path, all)
				}
			}
			for _, path := range c.no {
				if resolved, _ := filepath.EvalSymlinks(path); slices.Contains(all, path) || resolved != "" && slices.Contains(real, resolved) {
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
		"uvx":                {"uvx", "", []string{"/no/.cache/uv", "/no/.local/share/uv/python", "/no/.local/share/uv/tools"}},
		"npm":                {"npm", "", []string{"/no/.cache/node-gyp", "/no/.npm"}},
		"npx with a package": {"npx", "exa-mcp-server@3.4.1", []string{"/no/.cache/node-gyp", "/no/.npm/_cacache", "/no/.npm/_logs", "/no/.npm/_npx/f38053b63df93bd4"}},
	} {
		policy := box.Server{Name: "a", Env: []string{"HOME=/no"}, Runner: c.runner, Package: c.pkg}.Policy()
		got := slices.DeleteFunc(policy.Write, func(path string) bool { return !strings.HasPrefix(path, "/no/") })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
