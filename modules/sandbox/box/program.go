package box

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// A wideList has the directories that are too large to be granted implicitly: the home directory
// of a server, that of this process, the temporary directory shared by all, and all that hold one
// of them.
type wideList struct {
	paths []string      // without symbolic links
	files []os.FileInfo // of those that exist
}

func newWideList(dirs ...string) (w wideList) {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		for dir = sandbox.Resolve(dir); !slices.Contains(w.paths, dir); dir = filepath.Dir(dir) {
			w.paths = append(w.paths, dir)
			if info, err := os.Stat(dir); err == nil {
				w.files = append(w.files, info)
			}
		}
	}
	return w
}

// has reports whether a directory is too large. One directory has many paths, by symbolic links and
// by mounts.
func (w wideList) has(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return slices.Contains(w.paths, dir)
	}
	return slices.ContainsFunc(w.files, func(wide os.FileInfo) bool { return os.SameFile(info, wide) })
}

// interpreters are programs that run servers, or that servers start.
func interpreters() []string {
	all := []string{"node", "python", "python3", "deno", "ruby", "java"}
	for name, r := range packages.Runners {
		if r.Store != "" { // not a container engine
			all = append(all, name)
		}
	}
	return all
}

// runtimes returns the files and directories of the server's program and of the interpreters on
// its PATH: version managers keep them in the home directory.
func (s Server) runtimes(wide wideList) (all []string) {
	system := System()
	add := func(program string) {
		for _, path := range []string{program, sandbox.Resolve(program)} {
			if below(system, path) {
				continue
			}
			all = append(append(all, path, packageOf(path, wide)), installed(path)...)
		}
	}
	if s.Program != "" {
		add(s.Program)
	}
	names := interpreters()
	for _, dir := range filepath.SplitList(s.variable("PATH")) {
		for _, name := range names {
			if program, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				add(program)
			}
		}
	}
	return slices.DeleteFunc(all, wide.has)
}

// packageOf returns the directory of the package that a program is a file of, "" if there is none.
// Packages in one node_modules need one another.
func packageOf(program string, wide wideList) string {
	modules := string(filepath.Separator) + "node_modules"
	if before, _, ok := strings.Cut(program, modules+string(filepath.Separator)); ok {
		return before + modules
	}
	const levels = 3 // dist/bin/server
	dir := filepath.Dir(program)
	for range levels {
		if wide.has(dir) {
			break
		}
		if isPackage(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// isPackage reports whether a directory is a package of Node.js or Python. npm install makes a
// package.json without a name in any directory.
func isPackage(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "pyproject.toml")); err == nil {
		return true
	}
	text, err := regular.Read(context.Background(), filepath.Join(dir, "package.json"), regular.Small)
	var manifest struct{ Name string }
	return err == nil && json.Unmarshal(text, &manifest) == nil && manifest.Name != ""
}

// installations have the parts of a directory into which programs were installed, as DIR/bin/node or
// DIR/shims/node: those of a directory that has the first of them. The directory itself may hold
// documents, or the tokens of a registry.
var installations = [][]string{
	{"lib"}, {"lib32"}, {"lib64"}, {"libexec"}, {"include"},
	{"pyvenv.cfg", "bin", "share"}, // an environment of Python
	{"conda-meta", "bin", "share", "ssl"},
	{"lib/modules", "conf", "release"},                         // Java
	{"tools/image", "bin", "tools", "hooks.json", "layout.v4"}, // Volta
	{"shims", "bin", "versions", "version", "installs", "plugins"},
}

// installed returns the parts of the directory that a program was installed into.
func installed(program string) (all []string) {
	dir := filepath.Dir(program)
	if name := filepath.Base(dir); name != "bin" && name != "shims" {
		return nil
	}
	root := filepath.Dir(dir)
	for _, parts := range installations {
		if _, err := os.Stat(filepath.Join(root, parts[0])); err != nil {
			continue
		}
		for _, part := range parts {
			all = append(all, filepath.Join(root, part))
		}
	}
	return all
}
