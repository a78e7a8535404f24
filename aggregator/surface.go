package aggregator

import (
	"encoding/json"
	"fmt"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A tool is what a surface puts into a host's tools/list: one tool of ours, which
// answers calls or says which tool of an upstream they mean, or those of upstreams as
// themselves.
type tool struct {
	name string // of one tool of ours; "" stands for those of the direct surface
	// definitions returns the entries of tools/list, for a host that takes names of at most
	// longest characters.
	definitions func(v *catalog.View, longest int) []json.RawMessage
	// call answers a call; nil where means is set, or name is not.
	call func(s *session, r *host.Request, p callParams)
	// means reads from the arguments of a call which tool of an upstream it means.
	means func(p callParams, outline *wire.Outline) (toolCall, error)
}

// The surfaces that a config's expose may name, beside auto, which is discover or direct.
var surfaces = map[string]func(*Aggregator, *schema.Config) []tool{
	schema.ExposeDiscover: discoverSurface,
	schema.ExposeDirect:   directSurface,
	schema.ExposeBrowser:  browserSurface,
	schema.ExposeTree:     treeSurface,
	schema.ExposeProxy:    proxySurface,
}

// directSurface shows every upstream tool as itself.
func directSurface(a *Aggregator, _ *schema.Config) []tool {
	return []tool{{
		definitions: func(v *catalog.View, longest int) []json.RawMessage {
			var all []json.RawMessage
			for _, t := range v.Listed() {
				if _, ok := v.Direct(t.Direct); ok {
					all = append(all, v.DirectDefinition(t, longest))
				}
			}
			return all
		},
	}}
}

// looksOnly are the annotations of a tool of ours that only shows what there is.
const looksOnly = `{"readOnlyHint":true,"openWorldHint":false}`

// define returns an entry of tools/list for a tool of ours; annotations may be empty.
// Hosts that search for tools are kept from hiding it.
func define(name, description, input, annotations string) json.RawMessage {
	out := fmt.Appendf(nil, `{"name":%q,"description":%s,"inputSchema":%s`, name, wire.Quote(description), input)
	if annotations != "" {
		out = fmt.Appendf(out, `,"annotations":%s`, annotations)
	}
	return append(out, `,"_meta":{"anthropic/alwaysLoad":true}}`...)
}

func fixed(definition json.RawMessage) func(*catalog.View, int) []json.RawMessage {
	all := []json.RawMessage{definition}
	return func(*catalog.View, int) []json.RawMessage { return all }
}

// errorResult returns a tool result that tells the model what went wrong.
func errorResult(text string) json.RawMessage {
	return wire.Set(catalog.TextResult(text), "isError", []byte("true"))
}
