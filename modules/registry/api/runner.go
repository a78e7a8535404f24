package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/packages"
)

// The ways to run a server.
const (
	NPM    = packages.NPM
	PyPI   = packages.PyPI
	OCI    = packages.OCI
	MCPB   = "mcpb"
	Remote = "remote"
)

// Ways are the ways to run a server, in order of preference.
var Ways = []string{NPM, PyPI, MCPB, OCI, Remote}

// programs are the programs that run a package of a registry. The first is used unless the registry
// hints at another.
var programs = map[string][]string{NPM: {"npx"}, PyPI: {"uvx"}, OCI: {"docker", "podman"}}

// Versions must be exact, because a tag can move to another release.
var (
	npmName    = lazyregexp.New(`^(@[A-Za-z0-9_~][A-Za-z0-9._~-]*/)?[A-Za-z0-9_~][A-Za-z0-9._~-]*$`)
	pythonName = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	image      = lazyregexp.New(`^[a-z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?$`)
	tag        = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	semver     = lazyregexp.New(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	pep440     = lazyregexp.New(`^(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[0-9a-z.]+)?$`)
)

// spec returns a package with its version, as an argument of its runner.
func (p Package) spec() (string, error) {
	name, version := p.Identifier, p.Version
	malformed := fmt.Errorf("%s is not the name of a package of %s", line(name, 100), p.RegistryType)
	loose := fmt.Errorf("the version %q of its package is not exact", line(version, 40))
	switch p.RegistryType {
	case OCI:
		return p.image(malformed)
	case PyPI:
		switch {
		case !pythonName().MatchString(name):
			return "", malformed
		case !pep440().MatchString(version):
			return "", loose
		}
	default:
		switch {
		case !npmName().MatchString(name):
			return "", malformed
		case !semver().MatchString(version):
			return "", loose
		}
	}
	return name + "@" + version, nil
}

// image returns the reference of a container's image. Older entries have its registry and
// tag in fields of their own.
func (p Package) image(malformed error) (string, error) {
	ref := p.Identifier
	if host, _, ok := strings.Cut(strings.TrimPrefix(p.RegistryBaseURL, "https://"), "/"); (ok || host != "") && !named(ref) &&
		!slices.Contains([]string{"docker.io", "index.docker.io", "hub.docker.com", "registry-1.docker.io"}, host) {
		ref = host + "/" + ref
	}
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	if !strings.ContainsAny(last, ":@") {
		if !tag().MatchString(p.Version) {
			return "", fmt.Errorf("the image %s has neither tag nor digest", line(ref, 100))
		}
		ref += ":" + p.Version
	}
	if !image().MatchString(ref) {
		return "", malformed
	}
	if strings.HasSuffix(ref, ":latest") {
		return "", fmt.Errorf("the tag latest of %s is not a version", line(ref, 100))
	}
	return ref, nil
}

// named reports whether an image names its registry.
func named(ref string) bool {
	host, _, ok := strings.Cut(ref, "/")
	return ok && (strings.ContainsAny(host, ".:") || host == "localhost")
}

// program returns the program that runs a package. A hint at another program is not followed, and
// is an error if there are arguments for that program.
func (p Package) program() (program, note string, err error) {
	all := programs[p.RegistryType]
	switch {
	case p.RuntimeHint == "":
	case slices.Contains(all, p.RuntimeHint):
		return p.RuntimeHint, "", nil
	case len(p.RuntimeArguments) > 0:
		return "", "", fmt.Errorf("it wants to be run by %s, which dynmcp does not run packages of %s with", line(p.RuntimeHint, 40), p.RegistryType)
	default:
		note = fmt.Sprintf("the registry hints at %s; packages of %s are run by %s", line(p.RuntimeHint, 40), p.RegistryType, all[0])
	}
	return all[0], note, nil
}

// permit returns the runtime arguments that are passed on to a program, without the words self, which
// name the package itself: only flags that neither run nor fetch anything else.
func permit(program string, words []string, self ...string) (kept []string, err error) {
	r := packages.Runners[program]
	for i := 0; i < len(words); i++ {
		word := words[i]
		flag, _, joined := strings.Cut(word, "=")
		switch {
		case slices.Contains(r.Before, word) || slices.Contains(self, word):
		case slices.Contains(r.Safe, word), joined && slices.Contains(r.Valued, flag):
			kept = append(kept, word)
		case slices.Contains(r.Valued, word) && i+1 < len(words):
			kept = append(kept, word, words[i+1])
			i++
		default:
			return nil, fmt.Errorf("its runtime argument %s is not passed to %s", line(word, 60), program)
		}
	}
	return kept, nil
}

// reaches returns the arguments of a container that reach beyond it.
func reaches(words []string) (all []string) {
	for i, word := range words {
		flag, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		switch flag {
		case "-v", "--volume", "--mount", "--network", "--net", "-p", "--publish", "--add-host":
			all = append(all, flag+" "+value)
		}
	}
	return all
}
