package upstream

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// packageRunners are the commands that install a package where it is not there yet
// and then run it, by the words that ask for that.
var packageRunners = map[string][]string{
	"npx": nil, "bunx": nil, "uvx": nil, "pnpx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx"}, "yarn": {"dlx"}, "bun": {"x"}, "uv": {"tool", "run"}, "pipx": {"run"},
}

// runsPackage reports whether a command line is that of a package runner.
func runsPackage(command string, args []string) bool {
	name := strings.ToLower(filepath.Base(command))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".cmd"), ".exe")
	if (name == "cmd" || name == "env") && len(args) > 0 { // cmd /c npx …, env NAME=value npx …
		next := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "/") && !strings.Contains(arg, "=") })
		return next >= 0 && runsPackage(args[next], args[next+1:])
	}
	verbs, ok := packageRunners[name]
	return ok && (verbs == nil || len(args) > 0 && slices.Contains(verbs, args[0]))
}

// brokenInstall finds the folder of an npx install that was cut short in what npm
// prints of it from then on: that its package.json is not there.
var brokenInstall = regexp.MustCompile(`(?s)ENOENT.*?((?:[A-Za-z]:)?[/\\][^'"\n]*[/\\]_npx[/\\][0-9a-f]+)[/\\]package\.json`)

// installHint says what to do about a package runner that failed with these last
// lines of its stderr, "" if nothing is known.
func installHint(stderr string) string {
	found := brokenInstall.FindStringSubmatch(stderr)
	if found == nil {
		return ""
	}
	return "an earlier install of this package was cut short; remove the folder " + found[1] + " and try again"
}
