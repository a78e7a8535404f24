package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
)

// A host starts dynmcp in a directory of its own and, from a desktop, with few
// variables. missingVariables are those that the servers of a config would lack there,
// by server.
type missingVariables struct {
	directory   map[string][]string // set by the .env of the working directory alone
	environment map[string][]string // set by the environment of the shell alone
}

// missingUnderHost loads a config as a host would, and compares what is missing then
// with what is missing now. envFile, "" for none, is the file that a host is told to read.
func missingUnderHost(ctx context.Context, cfg *schema.Config, paths []string, envFile string) (missingVariables, error) {
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
		return missingVariables{}, err
	}
	now := missingOf(cfg)
	found, err := schema.ReadFiles(ctx, paths, options).Load()
	if err != nil {
		return missingVariables{}, err
	}
	directory := missingOf(found)
	options.Environ = desktopEnviron()
	if found, err = schema.ReadFiles(ctx, paths, options).Load(); err != nil {
		return missingVariables{}, err
	}
	return missingVariables{without(directory, now), without(without(missingOf(found), directory), now)}, nil
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
	environ := []string{"PATH=" + desktopPath}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(keep, strings.ToUpper(name)) {
			environ = append(environ, entry)
		}
	}
	return environ
}

// namesOf are the variables of all servers, each once.
func namesOf(lack map[string][]string) []string {
	var all []string
	for _, names := range lack {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkHostEnvironment reports what works here and would not where a host starts dynmcp.
func (d *doctor) checkHostEnvironment(ctx context.Context) {
	if d.cfg.Path == "" {
		return
	}
	missing, err := missingUnderHost(ctx, d.cfg, d.cfg.Sources, d.envFile)
	if err != nil {
		return // it would be an error here as well
	}
	beside := schema.EnvFileBeside(d.cfg.Path)
	for _, server := range slices.Sorted(maps.Keys(missing.directory)) {
		d.add(finding{Check: aboutConfig, Level: warning, Server: server,
			Text: fmt.Sprintf("a host starts dynmcp in another directory, where it would be off: %s only in the .env of this directory", are(missing.directory[server])),
			Hint: fmt.Sprintf("move that to %s, or have the host start dynmcp with -e; dynmcp install does that", beside)})
	}
	for _, server := range slices.Sorted(maps.Keys(missing.environment)) {
		d.add(finding{Check: aboutConfig, Level: note, Server: server,
			Text: fmt.Sprintf("with a host started from the desktop it may be off: %s only in the environment of this shell", are(missing.environment[server])),
			Hint: fmt.Sprintf("write that to %s, or to the env of dynmcp's entry in the host", beside)})
	}
	for _, s := range enabled(d.cfg) {
		if file := relativeFile(s); file != "" {
			d.add(finding{Check: aboutCommands, Level: warning, Server: s.Name,
				Text: fmt.Sprintf("a host starts dynmcp in another directory, where %q is not found", file),
				Hint: "write its full path, or give the entry a cwd"})
		}
	}
}

// are says of variables that they are set.
func are(names []string) string {
	if len(names) == 1 {
		return names[0] + " is set"
	}
	return strings.Join(names, ", ") + " are set"
}

var scriptFile = lazyregexp.New(`\.(?:[cm]?[jt]s|py|rb|sh|jar|json|ya?ml|toml)$`)

// relativeFile returns a file of the working directory that the command line of a
// server names, "" if it names none.
func relativeFile(s schema.Server) string {
	if s.Transport != schema.Stdio || s.Cwd != "" {
		return ""
	}
	for i, word := range append([]string{s.Command}, s.Args...) {
		if filepath.IsAbs(word) || i == 0 && !strings.ContainsAny(word, `/\`) || i > 0 && !strings.HasPrefix(word, "./") && !strings.HasPrefix(word, "../") && !scriptFile().MatchString(word) {
			continue
		}
		if info, err := os.Stat(word); err == nil && !info.IsDir() {
			return word
		}
	}
	return ""
}
