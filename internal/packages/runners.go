package packages

import (
	"path/filepath"
	"slices"
	"strings"
)

// The kinds of packages.
const (
	NPM  = "npm"
	PyPI = "pypi"
	OCI  = "oci"
)

// A Runner is a program that fetches a package and runs it. The zero Runner is no program.
type Runner struct {
	Kind  string // of its packages
	Store string // the package manager in whose directories it installs, "" if none: a key of [Stores]

	verbs    []string // the words before the package, "" if there are none
	installs []string // other words with which it installs something, which is not named
	from     []string // flags whose value is the package
	flags    []string // flags without a value

	// Before a package of a registry: words of its own, and the flags, without a value and with one, that
	// neither run nor fetch anything else.
	Before, Safe, Valued []string
}

// Runners are the runners by the names of their programs.
var Runners = map[string]Runner{
	"npx": {
		Kind: NPM, Store: "npm", verbs: []string{""}, from: []string{"-p", "--package"}, flags: []string{"-y", "--no", "--offline"},
		Before: []string{"-y"}, Safe: []string{"--yes", "-q", "--quiet", "--prefer-offline", "--prefer-online", "--ignore-scripts"},
	},
	"npm":  {Kind: NPM, Store: "npm", verbs: []string{"exec", "x"}, from: []string{"--package"}, flags: []string{"-y", "--yes", "--"}},
	"bunx": {Kind: NPM, Store: "bun", verbs: []string{""}, from: []string{"-p", "--package"}, flags: []string{"--bun", "--verbose", "--silent"}},
	"bun":  {Kind: NPM, Store: "bun", verbs: []string{"x"}, flags: []string{"--bun", "--verbose", "--silent"}},
	"pnpx": {Kind: NPM, Store: "pnpm", verbs: []string{""}, from: []string{"--package"}, flags: []string{"-s", "--silent"}},
	"pnpm": {Kind: NPM, Store: "pnpm", verbs: []string{"dlx"}, from: []string{"--package"}, flags: []string{"-s", "--silent"}},
	"yarn": {Kind: NPM, Store: "yarn", verbs: []string{"dlx"}, from: []string{"-p", "--package"}, flags: []string{"-q", "--quiet"}},
	"uvx": {
		Kind: PyPI, Store: "uv", verbs: []string{""}, from: []string{"--from"}, flags: []string{"--offline", "-n"},
		Safe:   []string{"-q", "--quiet", "--isolated", "--refresh", "--no-cache", "--native-tls"},
		Valued: []string{"--python", "-p", "--prerelease", "--resolution"},
	},
	"uv": {
		Kind: PyPI, Store: "uv", verbs: []string{"tool run"}, installs: []string{"run", "tool"}, from: []string{"--from"},
		flags: []string{"-q", "--quiet", "--isolated", "--offline", "--refresh", "--no-cache", "-n", "--native-tls"},
	},
	"pipx":   {Kind: PyPI, Store: "pipx", verbs: []string{"run"}, from: []string{"--spec"}, flags: []string{"--no-cache", "--verbose", "--quiet"}},
	"docker": container,
	"podman": container,
}

var container = Runner{
	Kind: OCI, verbs: []string{"run", "container run"}, Before: []string{"run", "-i", "--rm"},
	flags: []string{"-i", "-d", "-P", "--rm", "--detach", "--privileged", "--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--tls-verify"},
	Safe:  []string{"--interactive", "--init", "--read-only", "-q", "--quiet", "-t", "--tty", "-it", "-ti"},
	Valued: []string{
		"-e", "--env", "-v", "--volume", "--mount", "-p", "--publish", "--network", "--net", "--name", "-u", "--user", "-w", "--workdir", "--platform",
		"--add-host", "--tmpfs", "-m", "--memory", "--cpus", "--shm-size", "--pull", "-l", "--label", "--log-driver", "--dns", "-h", "--hostname",
	},
}

// RunsNPM reports whether a program runs the npm package that its arguments begin with.
func RunsNPM(program string) bool {
	r := Runners[program]
	return r.Kind == NPM && slices.Contains(r.verbs, "")
}

// Program returns the name of a program without directory and suffix.
func Program(command string) string {
	name := strings.ToLower(filepath.Base(filepath.FromSlash(command)))
	return strings.TrimSuffix(strings.TrimSuffix(name, ".cmd"), ".exe")
}

// find returns the program in a command line that may be a runner, and its arguments.
func find(command string, args []string) (program string, own []string) {
	if name := Program(command); name != "cmd" && name != "env" { // cmd /c npx …, env NAME=value npx …
		return command, args
	}
	next := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "/") && !strings.Contains(arg, "=") })
	if next < 0 {
		return "", nil
	}
	return find(args[next], args[next+1:])
}

// Installer returns the runner in a command line that installs what is missing before it starts a
// server, "" if there is none. only is the package of npx if it needs no other.
func Installer(command string, args []string) (name, only string) {
	program, own := find(command, args)
	name = Program(program)
	r := Runners[name]
	word := ""
	if len(own) > 0 {
		word = own[0]
	}
	if r.Store == "" || !slices.ContainsFunc(slices.Concat(r.verbs, r.installs), func(w string) bool { return w == "" || w == word }) {
		return "", ""
	}
	if name == "npx" && len(own) > 1 && (word == "-y" || word == "--yes") && strings.IndexAny(own[1], "-./") != 0 {
		only = own[1]
	}
	return name, only
}

// A Package is the package that a command runs.
type Package struct {
	Kind string // "" if the command runs no package
	Spec string // as in the command line, often with a version

	program string // that runs it
}

// Of returns the package that a command line runs.
func Of(command string, args []string) Package {
	program, args := find(command, args)
	r := Runners[Program(program)]
	for _, verb := range r.verbs {
		words := strings.Fields(verb)
		if len(args) < len(words) || !slices.Equal(args[:len(words)], words) {
			continue
		}
		if spec := r.spec(args[len(words):]); spec != "" {
			return Package{r.Kind, spec, program}
		}
	}
	return Package{}
}

// spec returns the package in the arguments.
func (r Runner) spec(args []string) string {
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		case slices.Contains(r.from, flag) && joined:
			return value
		case slices.Contains(r.from, flag) && i+1 < len(args):
			return args[i+1]
		case joined || slices.Contains(r.flags, flag) || slices.Contains(r.Safe, flag):
		default:
			i++ // its value
		}
	}
	return ""
}
