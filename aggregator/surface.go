package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports/host"
)

// A tool is what a surface puts into a host's tools/list: one tool of ours, or
// many that share a function.
type tool struct {
	name string // of one tool of ours; "" stands for those that find finds
	// definitions returns the entries of tools/list.
	definitions func(v *catalog.View) []json.RawMessage
	// call answers a call.
	call func(s *session, r *host.Request, p callParams)
	// find tells whether a name is one of the many; nil where name is set.
	find func(v *catalog.View, name string) (*catalog.Tool, bool)
}

// The surfaces that a config's expose may name.
var surfaces = map[string]func(*Aggregator, *schema.Config) []tool{
	schema.ExposeDiscover: discoverSurface,
	schema.ExposeDirect:   directSurface,
}

// exposes reports whether a surface is on.
func (a *Aggregator) exposes(surface string) bool {
	return slices.Contains(a.config().Expose, surface)
}

// directSurface shows every upstream tool as itself.
func directSurface(a *Aggregator, _ *schema.Config) []tool {
	return []tool{{
		definitions: func(v *catalog.View) []json.RawMessage {
			var all []json.RawMessage
			for _, t := range v.Listed() {
				if _, ok := v.Direct(t.Direct); ok {
					all = append(all, v.DirectDefinition(t))
				}
			}
			return all
		},
		find: func(v *catalog.View, name string) (*catalog.Tool, bool) { return v.Direct(name) },
	}}
}

// define returns an entry of tools/list; annotations may be empty.
func define(name, description, input, annotations, meta string) json.RawMessage {
	out := fmt.Appendf(nil, `{"name":%q,"description":%s,"inputSchema":%s`, name, wire.Quote(description), input)
	if annotations != "" {
		out = fmt.Appendf(out, `,"annotations":%s`, annotations)
	}
	return fmt.Appendf(out, `,"_meta":%s}`, meta)
}

func fixed(definition json.RawMessage) func(*catalog.View) []json.RawMessage {
	all := []json.RawMessage{definition}
	return func(*catalog.View) []json.RawMessage { return all }
}

func maxChars(cfg *schema.Config) int { return cfg.Catalog.MaxChars }

// textResult returns a tool result of one text.
func textResult(text string) json.RawMessage {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, wire.Quote(text))
}

// errorResult returns a tool result that tells the model what went wrong.
func errorResult(text string) json.RawMessage {
	return wire.Set(textResult(text), "isError", []byte("true"))
}
