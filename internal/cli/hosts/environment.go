package hosts

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// DesktopPath is the PATH of programs that macOS starts from the Dock or the Finder.
// Desktops that do not read the shell's files use a similar one.
const DesktopPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// MissingVariables are the variables, by server, that the servers of a config would lack
// under a host. A host starts dynmcp in another directory and, from a desktop, with few
// variables.
type MissingVariables struct {
	Directory   map[string][]string // set only in the .env of the working directory
	Environment map[string][]string // set only in the environment of the shell
}

// MissingUnder loads the config files paths as a host would, and returns the variables that
// are missing then and are not missing in cfg. envFile, if not empty, is the file given to
// the host's dynmcp with --env.
func MissingUnder(ctx context.Context, cfg *schema.Config, paths []string, envFile string) (MissingVariables, error) {
	root, err := filepath.Abs(string(filepath.Separator)) // where nobody has a .env
	options := module.Load(ctx)
	options.Dir = root
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

// missingOf returns the missing variables of a config, by server.
func missingOf(cfg *schema.Config) map[string][]string {
	missing := map[string][]string{}
	for _, s := range cfg.Servers {
		if s.Off != nil {
			missing[s.Name] = s.Off.Missing
		}
	}
	return missing
}

// without returns the entries of a that are not in b.
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

// desktopEnviron returns the environment of a program started from a desktop.
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

// VariablesOf returns the variables of all servers, sorted and without duplicates.
func VariablesOf(lack map[string][]string) []string {
	var all []string
	for _, names := range lack {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Are returns "A is set" for one variable, and "A, B are set" for several.
func Are(names []string) string {
	if len(names) == 1 {
		return names[0] + " is set"
	}
	return strings.Join(names, ", ") + " are set"
}
