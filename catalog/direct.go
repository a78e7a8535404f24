package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// MaxDirect is the longest name on the direct surface. Some hosts take only shorter ones.
const MaxDirect = 64

var (
	plainDirect = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	notDirect   = lazyregexp.New(`[^A-Za-z0-9_-]`)
	endsInHash  = lazyregexp.New(`_[0-9a-f]{8}$`)
)

// directName returns a tool's name among all tools of all servers: server__tool, or in
// single-wrap mode the name alone. An invalid or ambiguous name is made valid and gets a hash
// of the exact one. The name depends only on the tool, so it is the same whatever else is
// loaded.
func directName(s Server, leaf string) string {
	full := leaf
	if !s.Single {
		full = s.Name + "__" + leaf
	}
	// A server name without "_" ends at the first "__". A plain name that looks
	// hashed is hashed too: no tool can take another's name.
	clear := s.Single || !strings.Contains(s.Name, "_")
	if clear && plainDirect().MatchString(full) && !endsInHash().MatchString(full) {
		return full
	}
	fit := notDirect().ReplaceAllString(full, "_")
	return fit[:min(len(fit), MaxDirect-hashLen)] + nameHash(full)
}

// DirectName is the name of a server's tool, or of its alias, on the direct surface.
func DirectName(server, leaf string) string { return directName(Server{Name: server}, leaf) }

// hashLen is the length of what nameHash returns.
const hashLen = 9

func nameHash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "_" + hex.EncodeToString(sum[:4])
}

// ShortDirect returns a name of the direct surface for a host that allows at most longest
// characters, from 16 to MaxDirect. A name that is cut ends in a hash of the exact name.
// View.Direct finds the tool by it.
func ShortDirect(name string, longest int) string {
	switch {
	case len(name) <= longest:
		return name
	case endsInHash().MatchString(name): // of the exact name, which is longer still or has other characters
		return name[:longest-hashLen] + name[len(name)-hashLen:]
	}
	return name[:longest-hashLen] + nameHash(name)
}

// IsShort reports whether short is the result of ShortDirect for a longer name.
func IsShort(short, name string) bool {
	stem := len(short) - hashLen
	return stem > 0 && len(short) < len(name) && short[:stem] == name[:stem] && endsInHash().MatchString(short) &&
		ShortDirect(name, len(short)) == short
}

// Direct finds a tool by its name on the direct surface, also one that ShortDirect has cut.
func (v *View) Direct(name string) (*Tool, bool) {
	m := v.all()
	if t, ok := m.direct[name]; ok || !endsInHash().MatchString(name) {
		return t, ok
	}
	return only(m.tools, func(t *Tool) bool { return IsShort(name, t.Direct) })
}

// ServerOfDirect returns the server whose tool has a name on the direct surface, also one written
// server/tool, whether the tool is known or not; "" if there is none. In single-wrap mode it is the
// one server.
func (v *View) ServerOfDirect(name string) string {
	if p := v.single(); p != nil {
		return p.server.Name
	}
	longest := ""
	for _, p := range v.parts {
		server := p.server.Name
		plain := notDirect().ReplaceAllString(server, "_")
		if len(server) > len(longest) && (strings.HasPrefix(name, plain+"__") || strings.HasPrefix(name, server+"/")) {
			longest = server
		}
	}
	return longest
}

// Listed returns all known tools in the order in which their servers list them,
// servers in config order.
func (v *View) Listed() []*Tool {
	m := v.all()
	all := make([]*Tool, 0, len(m.tools))
	for _, p := range m.parts {
		for _, t := range p.docs {
			if t != nil {
				all = append(all, t)
			}
		}
	}
	return all
}
