package command

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// packageRunners are the commands that install a missing package and then run it, with the
// subcommands that do so.
var packageRunners = map[string][]string{
	"npx": nil, "bunx": nil, "uvx": nil, "pnpx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"}, "uv": {"tool", "run"}, "pipx": {"run"},
}

// RunsPackage reports whether a command line is that of a package runner.
func RunsPackage(command string, args []string) bool {
	name, _ := runnerOf(command, args)
	return name != ""
}

// runnerOf returns the name of the package runner in a command line, or "", and the
// runner's own arguments.
func runnerOf(command string, args []string) (name string, own []string) {
	name = strings.ToLower(filepath.Base(command))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".cmd"), ".exe")
	if (name == "cmd" || name == "env") && len(args) > 0 { // cmd /c npx …, env NAME=value npx …
		next := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "/") && !strings.Contains(arg, "=") })
		if next < 0 {
			return "", nil
		}
		return runnerOf(args[next], args[next+1:])
	}
	verbs, ok := packageRunners[name]
	if !ok || verbs != nil && (len(args) == 0 || !slices.Contains(verbs, args[0])) {
		return "", nil
	}
	return name, args
}

// brokenInstall finds the folder of an interrupted npx install in npm's message that its
// package.json is missing.
var brokenInstall = lazyregexp.New(`(?s)ENOENT.*?((?:[A-Za-z]:)?[/\\][^'"\n]*[/\\]_npx[/\\][0-9a-f]+)[/\\]package\.json`)

// InstallHint returns what to do about a package runner that failed with these last lines of
// stderr, "" if unknown.
func InstallHint(stderr string) string {
	found := brokenInstall().FindStringSubmatch(stderr)
	if found == nil {
		return ""
	}
	return "an earlier install of this package was cut short; remove the folder " + found[1] + " and try again"
}

// UnfinishedHint returns what to do about a package runner that wrote nothing within the load
// timeout, "" if unknown. After an interrupted install, npx waits about a minute for the lock
// that it left.
func UnfinishedHint(env []string) string {
	variables := map[string]string{}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		variables[strings.ToLower(name)] = value
	}
	standard := filepath.Join(variables["home"], ".npm")
	if runtime.GOOS == "windows" {
		standard = filepath.Join(variables["localappdata"], "npm-cache")
	}
	cache := cmp.Or(variables["npm_config_cache"], standard)
	locks, _ := filepath.Glob(filepath.Join(cache, "_npx", "*", "concurrency.lock")) // a bad pattern in the cache's name finds nothing
	for _, lock := range locks {
		folder := filepath.Dir(lock)
		if _, err := os.Stat(filepath.Join(folder, "package.json")); errors.Is(err, fs.ErrNotExist) {
			return "npx installs into " + folder + ", or was cut short there: try again, and if that hangs too remove the folder"
		}
	}
	return ""
}
