package box

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/sandbox"
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
	Hosts       []string // for sandbox.OnlyByProxy
	Network     sandbox.Network
	BestEffort  bool

	Trace *Trace // records what the server does, if not nil
}

// Policy returns the access of a server besides its temporary directory: what the entry grants,
// and what programs need. The latter excludes home directories and the secrets in them.
func (s Server) Policy() sandbox.Policy {
	p := sandbox.Policy{Network: s.Network, BestEffort: s.BestEffort}
	home := s.variable("HOME")
	ours, _ := os.UserHomeDir() // "" if unknown
	wide := newWideList(home, ours, os.TempDir())
	p.Read = append(System(), s.runtimes(wide)...)
	p.Write = Devices()
	dir, _ := filepath.Abs(s.Dir) // "" on an error, and dropped by unique
	if s.DirSet || home != "" && !wide.has(dir) {
		p.Read = append(p.Read, dir)
	}
	for _, dirs := range packages.Stores(s.variable) {
		p.Read = append(p.Read, slices.DeleteFunc(dirs, wide.has)...)
	}
	p.Write = append(p.Write, slices.DeleteFunc(s.installsInto(), wide.has)...)
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

func (s Server) variable(name string) string { return packages.VariablesOf(s.Env)(name) }

// installsInto returns the directories that the runner of a server writes to, none without a runner.
func (s Server) installsInto() []string {
	return packages.Runners[s.Runner].InstallsInto(packages.Stores(s.variable), s.Package)
}
