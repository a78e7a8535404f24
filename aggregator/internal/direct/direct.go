// Package direct is the surface that lists the tools of all servers under their own names.
package direct

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
)

// New returns the surface. cfg is nil for a session of one server.
func New(cfg *schema.Config) surface.Surface {
	s := surface.Surface{Direct: true, Tools: []surface.Tool{{Definitions: definitions}}}
	if cfg != nil && !cfg.SingleWrap { // otherwise the instructions are the server's
		s.Texts = []surface.Texts{texts{cfg: cfg}}
	}
	return s
}

type texts struct {
	surface.NoTexts
	cfg *schema.Config
}

func (t texts) Instructions(v *catalog.View) string {
	return v.Texts().DirectInstructions(t.cfg.Catalog.MaxChars)
}

func definitions(v *catalog.View, longest int) (all []json.RawMessage) {
	for _, t := range v.Listed() {
		if _, ok := v.Direct(t.Direct); ok {
			all = append(all, v.DirectDefinition(t, longest))
		}
	}
	return all
}
