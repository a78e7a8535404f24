package packages

import (
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// Variables returns the value of a variable, "" if it is not set.
type Variables func(name string) string

// over returns variables of which those of a map come before those of this process.
func over(env map[string]string) Variables {
	return func(name string) string { return cmp.Or(env[name], os.Getenv(name)) }
}

// VariablesOf returns the variables of an environment, in which the last of a name counts.
func VariablesOf(env []string) Variables {
	same := func(a, b string) bool { return a == b }
	if runtime.GOOS == "windows" {
		same = strings.EqualFold
	}
	return func(name string) (value string) {
		for _, entry := range env {
			if n, text, _ := strings.Cut(entry, "="); same(n, name) {
				value = text
			}
		}
		return value
	}
}

// home returns the home directory, or "".
func (v Variables) home() string { return cmp.Or(v("HOME"), v("USERPROFILE")) }

// first returns the first of the variables that is set, or the path below another directory.
func (v Variables) first(below, path string, names ...string) string {
	for _, name := range names {
		if dir := v(name); dir != "" {
			return dir
		}
	}
	return filepath.Join(below, path) // relative without a home
}

// npmCache returns the directory in which npm and npx keep packages.
func (v Variables) npmCache() string {
	usual := filepath.Join(v.home(), ".npm")
	if runtime.GOOS == "windows" {
		usual = filepath.Join(v("LocalAppData"), "npm-cache")
	}
	return cmp.Or(v("npm_config_cache"), v("NPM_CONFIG_CACHE"), usual)
}

// uvCache returns the directory in which uv keeps packages.
func (v Variables) uvCache() string {
	usual := filepath.Join(v.first(v.home(), ".cache", "XDG_CACHE_HOME"), "uv")
	if runtime.GOOS == "windows" {
		usual = filepath.Join(v("LocalAppData"), "uv", "cache")
	}
	return cmp.Or(v("UV_CACHE_DIR"), usual)
}

// Stores returns the directories in which package managers keep packages. Without a home, some are
// relative.
func Stores(v Variables) map[string][]string {
	home := v.home()
	cache, data := v.first(home, ".cache", "XDG_CACHE_HOME"), v.first(home, ".local/share", "XDG_DATA_HOME")
	all := map[string][]string{
		"npm":  {v.npmCache(), cache + "/node-gyp"},
		"uv":   {v.uvCache(), data + "/uv/python", data + "/uv/tools"}, // not data/uv/credentials
		"bun":  {v.first(home, ".bun", "BUN_INSTALL")},
		"pnpm": {cache + "/pnpm", data + "/pnpm", v("PNPM_HOME"), cache + "/node"},
		"yarn": {v.first(home, ".yarn"), v.first(cache, "yarn", "YARN_CACHE_FOLDER"), cache + "/node"},
		"pipx": {data + "/pipx", v.first(home, ".local/pipx"), v.first(cache, "pip", "PIP_CACHE_DIR")},
		"deno": {v.first(home, ".deno"), v.first(cache, "deno", "DENO_DIR")},
	}
	if runtime.GOOS == "darwin" && home != "" {
		for name := range all {
			all[name] = append(all[name], filepath.Join(home, "Library", "Caches"))
		}
	}
	return all
}

// InstallsInto returns the directories that a runner writes to. only is the package of npx, if it
// needs no other: npx then writes the folder of that package, but not the folders of others, which
// other servers run.
func (r Runner) InstallsInto(stores map[string][]string, only string) []string {
	dirs := stores[r.Store]
	if only == "" {
		return dirs
	}
	return append([]string{dirs[0] + "/_cacache", dirs[0] + "/_logs", dirs[0] + "/_npx/" + npxFolder(only)}, dirs[1:]...)
}

// npxFolder returns the name of the folder into which npx installs a package.
func npxFolder(spec string) string {
	sum := sha512.Sum512([]byte(spec))
	return hex.EncodeToString(sum[:8])
}

// brokenInstall finds the folder of an interrupted npx install in npm's message that its
// package.json is missing.
var brokenInstall = lazyregexp.New(`(?s)ENOENT.*?((?:[A-Za-z]:)?[/\\][^'"\n]*[/\\]_npx[/\\][0-9a-f]+)[/\\]package\.json`)

// noInterpreter finds the program of "#!/usr/bin/env PROGRAM" in the message of env that there is
// none.
var noInterpreter = lazyregexp.New(`(?m)^\s*(?:\S*/)?env: (?:can't execute )?['‘’"]?([^'‘’":\n]+)['‘’"]?: No such file or directory\s*$`)

// InstallHint returns what to do about a package runner or a script that failed with these last
// lines of stderr, "" if unknown.
func InstallHint(stderr string) string {
	if found := noInterpreter().FindStringSubmatch(stderr); found != nil {
		return fmt.Sprintf(`it runs %s, which is not on its PATH: add "env": {"PATH": "FOLDER:${PATH}"} to its entry, with the folder of %[1]s`, found[1])
	}
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
	v := VariablesOf(env)
	locks, _ := filepath.Glob(filepath.Join(v.npmCache(), "_npx", "*", "concurrency.lock")) // a bad pattern in the cache's name finds nothing
	for _, lock := range locks {
		folder := filepath.Dir(lock)
		if _, err := os.Stat(filepath.Join(folder, "package.json")); os.IsNotExist(err) {
			return "npx installs into " + folder + ", or was cut short there: try again, and if that hangs too remove the folder"
		}
	}
	return ""
}
