package sharing

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Hosts share a run if separate runs would have the same servers. So the name of the socket is
// derived from everything that affects a server: the config, its programs, and the variables
// that the config, dynmcp and HTTP requests depend on. PATH itself is excluded, because hosts
// prepend directories, some with a random name for each session.

// proxies are the proxy variables for servers over HTTP.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// userDirs are the directories of the user's files, below HOME where they are not set.
var userDirs = map[string]string{
	"XDG_CACHE_HOME": ".cache", "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state",
}

// sharedSocket returns the path of the shared socket: that of a live run, in any of the runtime
// directories, or else that of the run to start.
func (c *Client) sharedSocket(ctx context.Context) (string, error) {
	name, err := c.sharedName(ctx)
	if err != nil {
		return "", err
	}
	dirs := localhttp.Dirs()
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || localhttp.CheckPrivate(filepath.Dir(path)) != nil {
			continue
		}
		if localhttp.IsServed(ctx, path) {
			return path, nil
		}
	}
	return filepath.Join(dirs[0], name), localhttp.MakePrivate(dirs[0])
}

// sharedName returns the name of the socket for the config and the environment.
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

// environmentOf returns the variables that a run depends on if its config has this text, sorted.
// path is used to find programs.
func environmentOf(text []byte, path string) (variables []string) {
	home, mentioned := os.Getenv("HOME"), wordsOf(text)
	for name, dir := range userDirs {
		variables = append(variables, name+"="+cmp.Or(os.Getenv(name), filepath.Join(home, dir)))
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case userDirs[name] != "":
		case name == "PATH":
			if mentioned[name] {
				variables = append(variables, "PATH="+path)
			}
		case name == "HOME", slices.Contains(proxies, name), strings.HasPrefix(name, "DYNMCP_"), mentioned[name]:
			variables = append(variables, variable)
		}
	}
	slices.Sort(variables)
	return variables
}

// wordsOf returns the words of a text, among them all names of referenced variables.
func wordsOf(text []byte) map[string]bool {
	words := map[string]bool{}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		words[string(word)] = true
	}
	return words
}

// programs returns the program files of a config's servers, sorted. A missing program is included
// by name, because it may be installed later.
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

// interpreter returns the interpreter of a script that starts with "#!/usr/bin/env", as npx does,
// and "" for other files.
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

// sharedPath returns PATH without temporary directories, which differ between hosts, unless one
// of programs is in them.
func sharedPath(programs []string) string {
	var kept []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !isTemporary(dir) || slices.ContainsFunc(programs, func(program string) bool { return filepath.Dir(program) == filepath.Clean(dir) }) {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

func isTemporary(dir string) bool {
	if below, err := filepath.Rel(os.TempDir(), dir); err == nil && filepath.IsLocal(below) {
		return true
	}
	parts := strings.Split(filepath.ToSlash(dir), "/")
	return slices.Contains(parts, "tmp") || slices.Contains(parts, "temp")
}
