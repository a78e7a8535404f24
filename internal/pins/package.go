package pins

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// A runner is a command that fetches a package and runs it.
type runner struct {
	kind  string   // what the package is of: npm, pypi, oci
	verbs []string // the words before the package, "" if there are none
	from  []string // flags whose value is the package
	flags []string // flags without a value
}

var runners = map[string]runner{
	"npx":    {"npm", []string{""}, []string{"-p", "--package"}, []string{"-y", "--yes", "--no", "-q", "--quiet", "--prefer-offline", "--offline", "--prefer-online"}},
	"npm":    {"npm", []string{"exec", "x"}, []string{"--package"}, []string{"-y", "--yes", "--"}},
	"bunx":   {"npm", []string{""}, []string{"-p", "--package"}, []string{"--bun", "--verbose", "--silent"}},
	"bun":    {"npm", []string{"x"}, nil, []string{"--bun", "--verbose", "--silent"}},
	"pnpx":   {"npm", []string{""}, []string{"--package"}, []string{"-s", "--silent"}},
	"pnpm":   {"npm", []string{"dlx"}, []string{"--package"}, []string{"-s", "--silent"}},
	"yarn":   {"npm", []string{"dlx"}, []string{"-p", "--package"}, []string{"-q", "--quiet"}},
	"uvx":    {"pypi", []string{""}, []string{"--from"}, []string{"-q", "--quiet", "--isolated", "--offline", "--refresh", "--no-cache", "-n", "--native-tls"}},
	"uv":     {"pypi", []string{"tool run"}, []string{"--from"}, []string{"-q", "--quiet", "--isolated", "--offline", "--refresh", "--no-cache", "-n"}},
	"pipx":   {"pypi", []string{"run"}, []string{"--spec"}, []string{"--no-cache", "--verbose", "--quiet"}},
	"docker": {"oci", []string{"run", "container run"}, nil, containerFlags},
	"podman": {"oci", []string{"run", "container run"}, nil, containerFlags},
}

// containerFlags are those of docker run that take no value.
var containerFlags = []string{
	"-i", "-t", "-d", "-it", "-ti", "-P", "--rm", "--interactive", "--tty", "--detach", "--init", "--privileged", "--read-only", "--quiet", "-q",
	"--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--tls-verify",
}

// Package returns which package a command line runs, and in which version, as KIND:NAME@VERSION.
// The version is the one of the command line, or else what npx has installed for it; where
// neither says, it is left out. "" is a command that runs no package.
func Package(command string, args []string, env map[string]string) string {
	name := strings.ToLower(filepath.Base(command))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".cmd"), ".exe")
	if (name == "cmd" || name == "env") && len(args) > 0 { // cmd /c npx …, env NAME=value npx …
		next := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "/") && !strings.Contains(arg, "=") })
		if next < 0 {
			return ""
		}
		return Package(args[next], args[next+1:], env)
	}
	r := runners[name]
	for _, verb := range r.verbs {
		words := strings.Fields(verb)
		if len(args) < len(words) || !slices.Equal(args[:len(words)], words) {
			continue
		}
		if spec := r.spec(args[len(words):]); spec != "" {
			return r.kind + ":" + r.resolve(spec, env)
		}
	}
	return ""
}

// spec returns the package as the arguments have it.
func (r runner) spec(args []string) string {
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		case slices.Contains(r.from, flag) && joined:
			return value
		case slices.Contains(r.from, flag) && i+1 < len(args):
			return args[i+1]
		case joined || slices.Contains(r.flags, flag):
		default:
			i++ // its value
		}
	}
	return ""
}

// exactVersion is a version that is one release, not a range or a tag.
var exactVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v?\d+(\.\d+)*([-+.]?[0-9A-Za-z]+)*$`) })

// resolve returns a package with its version.
func (r runner) resolve(spec string, env map[string]string) string {
	at := strings.LastIndexByte(spec, '@')
	switch {
	case r.kind == "oci":
		return spec // NAME:TAG or NAME@sha256:…: what a tag stands for only the registry knows
	case r.kind == "pypi" && strings.Contains(spec, "=="):
		return strings.Replace(spec, "==", "@", 1)
	case r.kind == "npm" && (at <= 0 || !exactVersion().MatchString(spec[at+1:])):
		if at <= 0 {
			at = len(spec)
		}
		if version := installed(spec, spec[:at], env); version != "" {
			return spec[:at] + "@" + version
		}
	}
	return spec
}

// installed returns the version that npx runs for a package without one: it keeps an install
// for each set of packages it was asked for, in a directory that has their hash as its name.
func installed(spec, name string, env map[string]string) string {
	home, _ := os.UserHomeDir()
	cache := cmp.Or(env["npm_config_cache"], env["NPM_CONFIG_CACHE"], os.Getenv("npm_config_cache"), os.Getenv("NPM_CONFIG_CACHE"), filepath.Join(home, ".npm"))
	sum := sha512.Sum512([]byte(spec))
	path := filepath.Join(cache, "_npx", hex.EncodeToString(sum[:8]), "node_modules", filepath.FromSlash(name), "package.json")
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return ""
	}
	text, err := regular.Read(context.Background(), path, regular.Small)
	var manifest struct{ Version string }
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	return manifest.Version
}
