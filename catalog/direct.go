package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"dynmcp/internal/lazyregexp"
)

// maxDirect is the longest name some hosts accept for a tool.
const maxDirect = 64

var (
	plainDirect = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	notDirect   = lazyregexp.New(`[^A-Za-z0-9_-]`)
	endsInHash  = lazyregexp.New(`_[0-9a-f]{8}$`)
)

// directName is a tool's name among all tools of all servers: server__tool, or
// the bare name. A name that hosts would refuse, or that could be read two
// ways, is made fit and gets a hash of the exact one. It depends on nothing
// but the tool, so that it is the same whatever else is loaded.
func directName(s Server, leaf string) string {
	full := leaf
	if !s.Bare {
		full = s.Name + "__" + leaf
	}
	// A server name without "_" ends at the first "__". A plain name that looks
	// hashed is hashed too: no tool can take another's name.
	clear := s.Bare || !strings.Contains(s.Name, "_")
	if clear && plainDirect().MatchString(full) && !endsInHash().MatchString(full) {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	fit := notDirect().ReplaceAllString(full, "_")
	return fit[:min(len(fit), maxDirect-9)] + "_" + hex.EncodeToString(sum[:4])
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
