package hosts

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema"
)

// DesktopPath is the PATH of programs that macOS starts from the Dock or the
// Finder, and roughly that of a desktop that reads no shell's files.
const DesktopPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// A host starts dynmcp in a directory of its own and, from a desktop, with few
// variables. missingVariables are those that the servers of a config would lack there,
// by server.
type MissingVariables struct {
	Directory   map[string][]string // set by the .env of the working directory alone
	Environment map[string][]string // set by the environment of the shell alone
}

// MissingUnder loads a config as a host would, and compares what is missing then
// with what is missing now. envFile, "" for none, is the file that a host is told to read.
func MissingUnder(ctx context.Context, cfg *schema.Config, paths []string, envFile string) (MissingVariables, error) {
	root, err := filepath.Abs(string(filepath.Separator)) // where nobody has a .env
	options := schema.LoadOptions{Dir: root}
	if envFile != "" && err == nil {
		options.EnvFile, err = filepath.Abs(envFile)
	}
	paths = slices.Clone(paths)
	for i := 0; i < len(paths) && err == nil; i++ {
		paths[i], err = filepath.Abs(paths[i])
	}
	if err != nil {
		return MissingVariables{}, err
	}
	now := missingOf(cfg)
	found, err := schema.ReadFiles(ctx, paths, options).Load()
	if err != nil {
		return MissingVariables{}, err
	}
	directory := missingOf(found)
	options.Environ = desktopEnviron()
	if found, err = schema.ReadFiles(ctx, paths, options).Load(); err != nil {
		return MissingVariables{}, err
	}
	return MissingVariables{without(directory, now), without(without(missingOf(found), directory), now)}, nil
}

// missingOf returns the variables that the servers of a config lack, by server.
func missingOf(cfg *schema.Config) map[string][]string {
	missing := map[string][]string{}
	for _, s := range cfg.Servers {
		if s.Off != nil {
			missing[s.Name] = s.Off.Missing
		}
	}
	return missing
}

// without returns what is in a and not in b.
func without(a, b map[string][]string) map[string][]string {
	left := map[string][]string{}
	for server, names := range a {
		for _, name := range names {
			if !slices.Contains(b[server], name) {
				left[server] = append(left[server], name)
			}
		}
	}
	return left
}

// desktopEnviron are the variables that programs have which a desktop starts.
func desktopEnviron() []string {
	keep := []string{"HOME", "USER", "LOGNAME", "LANG", "SHELL", "TMPDIR", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SYSTEMROOT"}
	environ := []string{"PATH=" + DesktopPath}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(keep, strings.ToUpper(name)) {
			environ = append(environ, entry)
		}
	}
	return environ
}

// VariablesOf are the variables of all servers, each once.
func VariablesOf(lack map[string][]string) []string {
	var all []string
	for _, names := range lack {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Are says of variables that they are set.
func Are(names []string) string {
	if len(names) == 1 {
		return names[0] + " is set"
	}
	return strings.Join(names, ", ") + " are set"
}
