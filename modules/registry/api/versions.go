package api

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

var versionParts = lazyregexp.New(`\d+|[a-z]+`)

// early are the words of pre-releases, in order.
var early = []string{"dev", "a", "alpha", "b", "beta", "pre", "preview", "c", "rc"}

// Compare compares two versions of npm, PyPI or an image. Numbers compare by value, and
// pre-releases such as alpha or rc come before the release.
func Compare(a, b string) int {
	x, y := parts(a), parts(b)
	for i := range max(len(x), len(y)) {
		var p, q string
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if c := cmp.Compare(weight(p), weight(q)); c != 0 {
			return c
		}
	}
	return 0
}

func parts(version string) []string {
	version, _, _ = strings.Cut(strings.TrimPrefix(strings.ToLower(version), "v"), "+")
	return versionParts().FindAllString(version, -1)
}

// weight orders the parts of versions: early words, nothing or 0, other words, numbers.
func weight(part string) float64 {
	if n, err := strconv.ParseFloat(part, 64); err == nil {
		return 1 + n
	}
	switch at := slices.Index(early, part); {
	case at >= 0:
		return float64(at - len(early))
	case part == "":
		return 1
	}
	return 1.5
}

// Upgrade returns the arguments of an entry that was made from s, changed to a newer version. It
// is an error if more differs than the version of the package.
func (s *Server) Upgrade(newer *Server, args []string) ([]string, error) {
	for _, old := range s.Packages {
		spec, err := old.spec()
		at := slices.Index(args, spec)
		if old.RegistryType == MCPB || err != nil || at < 0 {
			continue
		}
		for _, now := range newer.Packages {
			if next, err := now.spec(); err == nil && reflect.DeepEqual(old.unversioned(), now.unversioned()) {
				args = slices.Clone(args)
				args[at] = next
				return args, nil
			}
		}
	}
	if len(args) == 0 && reflect.DeepEqual(s.Remotes, newer.Remotes) {
		return nil, nil // the entry of a remote has no version
	}
	return nil, fmt.Errorf("%s has other packages, arguments or variables than %s", newer.Version, s.Version)
}

// unversioned returns a package without its version.
func (p Package) unversioned() Package {
	p.Version, p.FileSHA256 = "", ""
	if at := strings.LastIndexAny(p.Identifier, ":@"); p.RegistryType == OCI && at > strings.LastIndexByte(p.Identifier, '/') {
		p.Identifier = p.Identifier[:at]
	}
	return p
}
