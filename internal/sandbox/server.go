package sandbox

import (
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A Server describes a server that runs in a sandbox, and the access that its entry grants.
type Server struct {
	Name    string
	Program string   // its path
	Dir     string   // working directory; "" is ours
	DirSet  bool     // its entry sets Dir
	Env     []string // all of it
	// Runner is a program that installs a package and then runs it, "" for others: its package
	// directories are writable.
	Runner  string
	Package string // the package of npx, as in its command line, if there is one

	Read, Write []string // as the entry has them: ~ is the home directory, relative ones are in Dir
	Hosts       []string // for OnlyByProxy
	Network     Network
	BestEffort  bool

	Trace *Trace // records what the server does, if not nil
}

// Policy returns the access of a server besides its temporary directory: what the entry grants,
// and what programs need. The latter excludes home directories and the secrets in them.
func (s Server) Policy() Policy {
	p := Policy{Network: s.Network, BestEffort: s.BestEffort}
	home := s.variable("HOME")
	ours, _ := os.UserHomeDir() // "" if unknown
	wide := newWideList(home, ours, os.TempDir())
	p.Read = append(System(), s.runtimes(wide)...)
	p.Write = Devices()
	dir, _ := filepath.Abs(s.Dir) // "" on an error, and dropped by unique
	if s.DirSet || home != "" && !wide.has(dir) {
		p.Read = append(p.Read, dir)
	}
	for _, dirs := range s.stores(home) {
		p.Read = append(p.Read, slices.DeleteFunc(dirs, wide.has)...)
	}
	if s.Runner != "" {
		p.Write = append(p.Write, slices.DeleteFunc(s.installsInto(s.stores(home)), wide.has)...)
	}
	for _, path := range s.Read {
		p.Read = append(p.Read, absolute(path, dir, home))
	}
	for _, path := range s.Write {
		p.Write = append(p.Write, absolute(path, dir, home))
	}
	p.Read, p.Write = unique(p.Read), unique(p.Write)
	return p
}

func unique(paths []string) []string {
	paths = slices.DeleteFunc(paths, func(path string) bool { return !filepath.IsAbs(path) })
	slices.Sort(paths)
	return slices.Compact(paths)
}

// absolute returns the absolute form of a path in an entry.
func absolute(path, dir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		return filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// holds reports whether a directory is another one, or contains it.
func holds(dir, inner string) bool {
	rest, err := filepath.Rel(dir, inner)
	return err != nil || rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

func (s Server) variable(name string) (value string) {
	for _, entry := range s.Env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v // the last counts
		}
	}
	return value
}

// stores returns the directories in which package runners keep packages, by runner.
func (s Server) stores(home string) map[string][]string {
	place := func(otherwise string, names ...string) string {
		for _, name := range names {
			if dir := s.variable(name); dir != "" {
				return dir
			}
		}
		return filepath.Join(home, otherwise) // without a home it is relative, and dropped
	}
	cache, data := place(".cache", "XDG_CACHE_HOME"), place(".local/share", "XDG_DATA_HOME")
	all := map[string][]string{
		"npm":  {place(".npm", "npm_config_cache", "NPM_CONFIG_CACHE"), cache + "/node-gyp"},
		"uv":   {cmp.Or(s.variable("UV_CACHE_DIR"), cache+"/uv"), data + "/uv/python", data + "/uv/tools"}, // not data/uv/credentials
		"bun":  {place(".bun", "BUN_INSTALL")},
		"pnpm": {cache + "/pnpm", data + "/pnpm", s.variable("PNPM_HOME"), cache + "/node"},
		"yarn": {place(".yarn"), cmp.Or(s.variable("YARN_CACHE_FOLDER"), cache+"/yarn"), cache + "/node"},
		"pipx": {data + "/pipx", place(".local/pipx"), cmp.Or(s.variable("PIP_CACHE_DIR"), cache+"/pip")},
		"deno": {place(".deno"), cmp.Or(s.variable("DENO_DIR"), cache+"/deno")},
	}
	if runtime.GOOS == "darwin" && home != "" {
		for name := range all {
			all[name] = append(all[name], filepath.Join(home, "Library", "Caches"))
		}
	}
	return all
}

// installsInto returns the directories that the runner of a server writes to. For npx it is the
// folder of its package, but not the folders of other packages, which other servers run.
func (s Server) installsInto(stores map[string][]string) []string {
	names := map[string]string{"npx": "npm", "uvx": "uv", "bunx": "bun", "pnpx": "pnpm"}
	dirs := stores[cmp.Or(names[s.Runner], s.Runner)]
	if s.Package == "" {
		return dirs
	}
	npm, folder := dirs[0], sha512.Sum512([]byte(s.Package)) // as npm names it
	return append([]string{npm + "/_cacache", npm + "/_logs", npm + "/_npx/" + hex.EncodeToString(folder[:8])}, dirs[1:]...)
}
