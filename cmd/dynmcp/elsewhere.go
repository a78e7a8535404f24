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
// variables. This file finds out what a config would lack there.

// elsewhere is what servers of a config would lack: names of variables by server.
type elsewhere struct {
	directory   map[string][]string // set by the .env of the working directory alone
	environment map[string][]string // set by the environment of the shell alone
}

// lookElsewhere loads a config as a host would, and compares what is missing then
// with what is missing now. envFile is the file that a host is told to read, too.
func lookElsewhere(ctx context.Context, cfg *schema.Config, paths []string, envFile string) (elsewhere, error) {
	var abs []string
	for _, path := range append(slices.Clone(paths), envFile) {
		if path == "" {
			abs = append(abs, "")
			continue
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return elsewhere{}, err
		}
		abs = append(abs, full)
	}
	paths, envFile = abs[:len(paths)], abs[len(paths)]
	root, err := filepath.Abs(string(filepath.Separator)) // where nobody has a .env
	if err != nil {
		return elsewhere{}, err
	}
	missing := func(environ []string) (map[string][]string, error) {
		found, err := schema.ReadFiles(ctx, paths, schema.LoadOptions{EnvFile: envFile, Dir: root, Environ: environ}).Load()
		if err != nil {
			return nil, err
		}
		lack := map[string][]string{}
		for _, s := range found.Servers {
			if s.Off != nil {
				lack[s.Name] = s.Off.Missing
			}
		}
		return lack, nil
	}
	inDirectory, err := missing(nil)
	if err != nil {
		return elsewhere{}, err
	}
	onDesktop, err := missing(desktopEnviron())
	if err != nil {
		return elsewhere{}, err
	}
	now := map[string][]string{}
	for _, s := range cfg.Servers {
		if s.Off != nil {
			now[s.Name] = s.Off.Missing
		}
	}
	return elsewhere{without(inDirectory, now), without(without(onDesktop, inDirectory), now)}, nil
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

// checkElsewhere reports what works here and would not where a host starts dynmcp.
func (d *doctor) checkElsewhere(ctx context.Context) {
	if d.cfg.Path == "" {
		return
	}
	lack, err := lookElsewhere(ctx, d.cfg, d.cfg.Sources, d.envFile)
	if err != nil {
		return // it would be an error here as well
	}
	beside := schema.EnvFileBeside(d.cfg.Path)
	for _, server := range slices.Sorted(maps.Keys(lack.directory)) {
		d.add(finding{Check: aboutConfig, Level: warning, Server: server,
			Text: fmt.Sprintf("a host starts dynmcp in another directory, where it would be off: %s only in the .env of this directory", are(lack.directory[server])),
			Hint: fmt.Sprintf("move that to %s, or have the host start dynmcp with -e; dynmcp install does that", beside)})
	}
	for _, server := range slices.Sorted(maps.Keys(lack.environment)) {
		d.add(finding{Check: aboutConfig, Level: note, Server: server,
			Text: fmt.Sprintf("with a host started from the desktop it may be off: %s only in the environment of this shell", are(lack.environment[server])),
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
