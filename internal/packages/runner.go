package packages

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// A runner is a command that fetches a package and runs it.
type runner struct {
	kind  string   // the kind of the package: npm, pypi, oci
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

// containerFlags are the flags of docker run that take no value.
var containerFlags = []string{
	"-i", "-t", "-d", "-it", "-ti", "-P", "--rm", "--interactive", "--tty", "--detach", "--init", "--privileged", "--read-only", "--quiet", "-q",
	"--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--tls-verify",
}

// A Package is the package that a command runs.
type Package struct {
	Kind string // npm, pypi, oci; "" if the command runs no package
	Spec string // as in the command line, often with a version

	program string // that runs it
}

// Of returns the package that a command line runs.
func Of(command string, args []string) Package {
	name := strings.ToLower(filepath.Base(filepath.FromSlash(command)))
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".cmd"), ".exe")
	if (name == "cmd" || name == "env") && len(args) > 0 { // cmd /c npx …, env NAME=value npx …
		next := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "/") && !strings.Contains(arg, "=") })
		if next < 0 {
			return Package{}
		}
		return Of(args[next], args[next+1:])
	}
	r := runners[name]
	for _, verb := range r.verbs {
		words := strings.Fields(verb)
		if len(args) < len(words) || !slices.Equal(args[:len(words)], words) {
			continue
		}
		if spec := r.spec(args[len(words):]); spec != "" {
			return Package{r.kind, spec, command}
		}
	}
	return Package{}
}

// spec returns the package in the arguments.
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
var exactVersion = lazyregexp.New(`^v?\d+(\.\d+)*([-+.]?[0-9A-Za-z]+)*$`)

// Running returns the package of a command line, as KIND:NAME@VERSION, "" if there is none. The version
// is that of the command line, or else of the copy of npx, uvx or the container engine; without a
// copy it is left out.
func Running(ctx context.Context, command string, args []string, env map[string]string) string {
	p := Of(command, args)
	name, version := p.Cut()
	switch {
	case p.Kind == "":
		return ""
	case p.Kind == "oci" && !strings.Contains(p.Spec, "@sha256:"):
		version = p.digest(ctx, env)
	case p.Kind == "npm" && !exactVersion().MatchString(version):
		folder := sha512.Sum512([]byte(p.Spec)) // npx has an install for each set of requested packages
		file := filepath.Join(npxDir(env), hex.EncodeToString(folder[:8]), "node_modules", filepath.FromSlash(name), "package.json")
		version = cmp.Or(manifest(newest(ctx, name, file)).Version, version)
	case p.Kind == "pypi" && version == "":
		version = metadata(newestWheel(ctx, name, env), "Version")
	}
	if version != "" {
		version = "@" + version
	}
	return p.Kind + ":" + name + version
}

// Cut returns the name of a package, and the version in its command line.
func (p Package) Cut() (name, version string) {
	if before, after, ok := strings.Cut(p.Spec, "=="); ok && p.Kind == "pypi" {
		return before, after
	}
	if at := strings.LastIndexByte(p.Spec, '@'); at > 0 {
		return p.Spec[:at], p.Spec[at+1:]
	}
	return p.Spec, ""
}

// digest returns the digest of a container engine's image of a name, "" if there is none or the
// engine does not answer soon.
func (p Package) digest(ctx context.Context, env map[string]string) string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program, "image", "inspect", "--format", `{{range .RepoDigests}}{{println .}}{{end}}{{.Id}}`, "--", p.Spec)
	cmd.WaitDelay, cmd.Env = time.Second, os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	_, digest, found := strings.Cut(first, "@")
	if !found {
		return first // of a locally built image
	}
	return digest
}
