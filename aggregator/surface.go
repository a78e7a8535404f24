package aggregator

import (
	"bytes"
	"encoding/json"
	"fmt"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports/host"
)

// A tool is what a surface puts into a host's tools/list: one tool of ours, or
// many that share a function.
type tool struct {
	name string // of one tool of ours; "" stands for those that find finds
	// definitions returns the entries of tools/list, for a host that takes names of at most
	// longest characters.
	definitions func(v *catalog.View, longest int) []json.RawMessage
	// call answers a call.
	call func(s *session, r *host.Request, p callParams)
	// find tells whether a name is one of the many; nil where name is set.
	find func(v *catalog.View, name string) (*catalog.Tool, bool)
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
		find: func(v *catalog.View, name string) (*catalog.Tool, bool) { return v.Direct(name) },
	}}
}

// A lookup finds the tool that a call names in what a session sees. Where it does
// not know it but knows its server, that is loaded if it has not been listed.
type lookup func(view *catalog.View) (t *catalog.Tool, server string)

// An innerCall is a call of an upstream's tool, as the arguments of a tool of ours.
type innerCall struct {
	outer callParams      // of the call of our tool
	input json.RawMessage // for the upstream's tool; part of them
}

// own returns the call with bytes of its own: those of the host's line are lent.
func (c innerCall) own() innerCall {
	c.outer.all, c.input = bytes.Clone(c.outer.all), bytes.Clone(c.input)
	return c
}

// callNamed is the way from a tool of ours to one of an upstream. Whether there is
// such a tool is the view's to say, from which tools are listed, too: one that a
// filter hides cannot be found. then is called with what was found, at once or when
// its server was loaded; unknown gives the answer where nothing was.
func (a *Aggregator) callNamed(s *session, r *host.Request, c innerCall, find lookup,
	then func(s *session, r *host.Request, t *catalog.Tool, c innerCall), unknown func(view *catalog.View) string) {
	view := a.viewOf(s)
	t, server := find(view)
	if t != nil {
		then(s, r, t, c)
		return
	}
	u := a.unlisted(view, server)
	if u == nil {
		r.Reply(errorResult(unknown(view)), nil)
		return
	}
	c = c.own()
	a.whenLoaded(s, r, u, func() {
		view := a.viewOf(s)
		if t, _ := find(view); t != nil {
			then(s, r, t, c)
			return
		}
		r.Reply(errorResult(unknown(view)), nil)
	})
}

// callInner calls a tool in the place of the tool of ours that the host called: with
// these arguments, and all else of the host's params as it is. What may go wrong on our
// side is text for the model.
func (a *Aggregator) callInner(s *session, r *host.Request, t *catalog.Tool, outer callParams, input json.RawMessage, to route) {
	to.params, to.task, to.asText = outer.with(t.Upstream, input), outer.task, !s.tree
	r.Params, r.Outline = nil, nil // they may be used up
	a.callUpstream(s, r, t, to)
}

// define returns an entry of tools/list; annotations may be empty.
func define(name, description, input, annotations, meta string) json.RawMessage {
	out := fmt.Appendf(nil, `{"name":%q,"description":%s,"inputSchema":%s`, name, wire.Quote(description), input)
	if annotations != "" {
		out = fmt.Appendf(out, `,"annotations":%s`, annotations)
	}
	return fmt.Appendf(out, `,"_meta":%s}`, meta)
}

func fixed(definition json.RawMessage) func(*catalog.View, int) []json.RawMessage {
	all := []json.RawMessage{definition}
	return func(*catalog.View, int) []json.RawMessage { return all }
}

func maxChars(cfg *schema.Config) int { return cfg.Catalog.MaxChars }

// errorResult returns a tool result that tells the model what went wrong.
func errorResult(text string) json.RawMessage {
	return wire.Set(catalog.TextResult(text), "isError", []byte("true"))
}
