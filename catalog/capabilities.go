package catalog

import (
	"encoding/json"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Capabilities returns the server capabilities to advertise: what any known
// upstream has. With unknown, some upstream is yet to be listed and everything
// that dynmcp passes on is advertised. The tools list can always change.
func (v *View) Capabilities(unknown bool) json.RawMessage {
	has := func(path ...string) bool { return unknown || v.anyCapability(path) }
	members := []string{`"tools":{"listChanged":true}`}
	if has("resources") {
		members = append(members, `"resources":`+flags(has, "resources", "subscribe", "listChanged"))
	}
	if has("prompts") {
		members = append(members, `"prompts":`+flags(has, "prompts", "listChanged"))
	}
	for _, name := range []string{"completions", "logging"} {
		if has(name) {
			members = append(members, `"`+name+`":{}`)
		}
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

// flags returns an object of those named flags that some upstream sets.
func flags(has func(...string) bool, capability string, names ...string) string {
	var set []string
	for _, name := range names {
		if has(capability, name) {
			set = append(set, `"`+name+`":true`)
		}
	}
	return "{" + strings.Join(set, ",") + "}"
}

// anyCapability tells whether some upstream has the member at path, neither
// null nor false.
func (v *View) anyCapability(path []string) bool {
	for _, p := range v.parts {
		if p.index == nil {
			continue
		}
		switch string(wire.Get(p.index.listing.Capabilities, path...)) {
		case "", "null", "false":
		default:
			return true
		}
	}
	return false
}
