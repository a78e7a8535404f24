package apps

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

const (
	listed          = 2000 // characters of the definitions of tools with a view that are listed by themselves
	longDescription = 300  // of one of them
	longNames       = 600  // of the others, in the description of use_app
)

const (
	viewCall = "view_call" // the tool by which views call
	useApp   = "use_app"   // the tool that calls those with a view that are not listed
)

const viewCallDefinition = `{"name":"` + viewCall + `","description":"A call by a view.","inputSchema":{"type":"object","properties":{` +
	`"view":{"type":"string"},"tool_name":{"type":"string"},"tool_input":{"type":"object"}},"required":["view","tool_name"]},` +
	`"_meta":{"ui":{"visibility":["app"]}}}`

const useAppInput = `{"type":"object","properties":{"tool_name":{"type":"string"},` +
	`"tool_input":{"type":"object","description":"By the tool's input schema.","additionalProperties":true}},"required":["tool_name"]}`

// withView returns the tools with a view that models call and that are not pinned, the most used first.
func (p *part) withView(v *catalog.View) (all []*catalog.Tool) {
	pinned := *p.pinned.Load()
	for _, t := range v.Listed() {
		if !t.OnlyViews && !pinned[t.Name] && t.HasView {
			all = append(all, t)
		}
	}
	used := p.used()
	slices.SortStableFunc(all, func(x, y *catalog.Tool) int { return cmp.Compare(used[y.Name], used[x.Name]) })
	return all
}

// hasViews reports whether a server has a view.
func hasViews(v *catalog.View, server string) bool {
	return slices.ContainsFunc(v.Listed(), func(t *catalog.Tool) bool { return t.Server == server && t.HasView })
}

// split returns the tools with a view that are listed by themselves, and the others.
func (p *part) split(v *catalog.View, longest int) (shown []extension.Tool, rest []*catalog.Tool) {
	size := 0
	for _, t := range p.withView(v) {
		def := definition(v, t, longest)
		if size+display.Units(string(def)) > listed {
			rest = append(rest, t)
			continue
		}
		size += display.Units(string(def))
		shown = append(shown, extension.Tool{Definition: def, Of: t})
	}
	return shown, rest
}

// Tools implements extension.Lister.
func (p *part) Tools(h extension.Hosts, v *catalog.View) (all []extension.Tool) {
	if !p.on.Load() || !h.Able.ShowsViews() || h.SingleServer && h.Direct {
		return nil
	}
	if !slices.ContainsFunc(v.Listed(), func(t *catalog.Tool) bool { return t.HasView }) {
		return nil
	}
	if !h.Direct {
		var rest []*catalog.Tool
		if all, rest = p.split(v, h.Longest); rest != nil {
			all = append(all, extension.Tool{Definition: defineUseApp(rest)})
		}
	}
	return append(all, extension.Tool{Definition: json.RawMessage(viewCallDefinition)})
}

// definition returns the entry of a tool in the list of a host: that of the direct surface, but short.
func definition(v *catalog.View, t *catalog.Tool, longest int) json.RawMessage {
	def := wire.Delete(v.DirectDefinition(t, longest), "outputSchema")
	if text, ok := wire.Text(wire.Get(def, "description")); ok && display.Units(text) > longDescription {
		def = wire.Set(def, "description", wire.Quote(display.Cut(text, longDescription)))
	}
	return def
}

func defineUseApp(tools []*catalog.Tool) json.RawMessage {
	var names []string
	size := 0
	for i, t := range tools {
		if size += len(t.Name) + 2; size > longNames {
			names = append(names, fmt.Sprintf("and %d more, which discover_tool finds", len(tools)-i))
			break
		}
		names = append(names, t.Name)
	}
	return fmt.Appendf(nil, `{"name":%q,"description":%s,"inputSchema":%s,"_meta":{"anthropic/alwaysLoad":true,"ui":{"resourceUri":%q}}}`,
		useApp, wire.Quote("Uses a tool as use_tool does, and shows its view to the user: "+strings.Join(names, ", ")), useAppInput, dispatcherURI)
}
