package sharing

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Hosts share a run if its servers would be the same as those of a run of their own. So
// the name of its socket stands for what a server sees: the config, the programs that it
// names, and the variables that it, dynmcp and requests depend on. PATH as such is not
// part of it: hosts put directories of their own in front, one of a random name for each
// session.

// proxies are the variables by which servers over HTTP are reached.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// userDirs are the directories of the user's files, below HOME where they are not set.
var userDirs = map[string]string{
	"XDG_CACHE_HOME": ".cache", "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state",
}

// sharedSocket returns the path of the socket that hosts share which would start the
// same: that of a run that lives, wherever it was put, or of one to be started.
func (c *Client) sharedSocket(ctx context.Context) (string, error) {
	name, err := c.sharedName(ctx)
	if err != nil {
		return "", err
	}
	dirs := RuntimeDirs()
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || CheckPrivate(filepath.Dir(path)) != nil {
			continue
		}
		lock, err := lockSocket(path)
		if errors.Is(err, errLocked) {
			return path, nil
		}
		if err == nil {
			_ = lock.Close()
		}
	}
	return filepath.Join(dirs[0], name), MakePrivate(dirs[0])
}

// sharedName returns the name of the socket of the run that the config and the
// environment ask for.
func (c *Client) sharedName(ctx context.Context) (string, error) {
	cfg, err := c.Load(ctx)
	if err != nil {
		return "", err
	}
	paths, err := c.Files()
	if err != nil {
		return "", err
	}
	if c.EnvFile != "" {
		paths = append(paths, c.EnvFile)
	}
	h := sha256.New()
	fmt.Fprintf(h, "version %q\nprofile %q\n", c.Version, c.Profile)
	text, err := readNamed(ctx, h, paths)
	if err != nil {
		return "", err
	}
	found := programs(cfg)
	for _, program := range found {
		fmt.Fprintf(h, "program %q\n", program)
	}
	for _, variable := range environmentOf(text, sharedPath(found)) {
		fmt.Fprintf(h, "%q\n", variable)
	}
	return fmt.Sprintf("%x.sock", h.Sum(nil)[:8]), nil
}

// readNamed returns the texts of files, and writes their absolute paths to names.
func readNamed(ctx context.Context, names io.Writer, paths []string) (text []byte, err error) {
	for _, path := range paths {
		data, err := regular.Read(ctx, path, regular.Small)
		if err != nil {
			return nil, err
		}
		text = append(append(text, data...), '\n')
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		fmt.Fprintf(names, "file %q\n", path)
	}
	return text, nil
}

// environmentOf returns what of the environment a run depends on whose config has this
// text, sorted. Servers find programs by path.
func environmentOf(text []byte, path string) (variables []string) {
	home := os.Getenv("HOME")
	for name, dir := range userDirs {
		variables = append(variables, name+"="+cmp.Or(os.Getenv(name), filepath.Join(home, dir)))
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case userDirs[name] != "":
		case name == "PATH":
			if mentions(text, name) {
				variables = append(variables, "PATH="+path)
			}
		case name == "HOME", slices.Contains(proxies, name), strings.HasPrefix(name, "DYNMCP_"), mentions(text, name):
			variables = append(variables, variable)
		}
	}
	slices.Sort(variables)
	return variables
}

// mentions reports whether a text has a word in it, as ${NAME} or however else configs
// refer to a variable.
func mentions(text []byte, word string) bool {
	isPart := func(b byte) bool {
		return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	for rest := text; ; {
		at := bytes.Index(rest, []byte(word))
		if at < 0 || word == "" {
			return false
		}
		end := at + len(word)
		if (at == 0 || !isPart(rest[at-1])) && (end == len(rest) || !isPart(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

// programs returns the files of the programs that a config's servers are, sorted. One
// that is not found is there by its name: it may be installed later.
func programs(cfg *schema.Config) (found []string) {
	for _, s := range cfg.Servers {
		if s.Disabled || s.Transport != schema.Stdio {
			continue
		}
		s.Cwd = cmp.Or(s.Cwd, workingDir(cfg.Path))
		path, err := command.LookPath(s)
		if err != nil {
			found = append(found, s.Command)
			continue
		}
		found = append(found, path)
		if s.Command = interpreter(path); s.Command != "" {
			if path, err = command.LookPath(s); err == nil {
				found = append(found, path)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// interpreter returns the program that a script leaves env to find, as npx does, "" where
// a file is no such script.
func interpreter(path string) string {
	head, err := regular.Head(context.Background(), path, 256)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(head), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !ok || len(words) < 2 || filepath.Base(words[0]) != "env" {
		return ""
	}
	if words[1] == "-S" && len(words) > 2 {
		return words[2]
	}
	return words[1]
}

// sharedPath returns PATH without the directories of one host alone: those for temporary
// files, unless one of the programs is there.
func sharedPath(programs []string) string {
	var kept []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !isTemporary(dir) || slices.ContainsFunc(programs, func(program string) bool { return filepath.Dir(program) == filepath.Clean(dir) }) {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// isTemporary reports whether a directory is below one for temporary files, the system's
// or a program's own.
func isTemporary(dir string) bool {
	if below, err := filepath.Rel(os.TempDir(), dir); err == nil && filepath.IsLocal(below) {
		return true
	}
	parts := strings.Split(filepath.ToSlash(dir), "/")
	return slices.Contains(parts, "tmp") || slices.Contains(parts, "temp")
}

// RuntimeDirs returns the directories that may have sockets of this user in them: first
// the one for those that we make, last the one that hosts find which keep
// XDG_RUNTIME_DIR from us.
func RuntimeDirs() []string {
	known := filepath.Join(os.TempDir(), fmt.Sprintf("dynmcp-%d", os.Getuid()))
	if system := fmt.Sprintf("/run/user/%d", os.Getuid()); CheckPrivate(system) == nil {
		known = filepath.Join(system, "dynmcp")
	}
	own := os.Getenv("XDG_RUNTIME_DIR")
	if own = filepath.Join(own, "dynmcp"); !filepath.IsAbs(own) || own == known {
		return []string{known}
	}
	return []string{own, known}
}

// MakePrivate makes a directory of this user's sockets, where nobody else can put any.
func MakePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return hint.With(err, "name a socket with --socket")
	}
	return CheckPrivate(dir)
}

// announceSocket has hosts find a socket that do not know of its directory. Those that
// cannot start a run of their own.
func announceSocket(path string) {
	dirs := RuntimeDirs()
	known := dirs[len(dirs)-1]
	if known == filepath.Dir(path) || MakePrivate(known) != nil {
		return
	}
	link := filepath.Join(known, filepath.Base(path))
	_ = os.Remove(link)
	_ = os.Symlink(path, link)
}
