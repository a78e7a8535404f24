package keys

import (
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/dynmcp/dynmcp/schema"
)

// complete adds the rules that Go types cannot express: which keys of a server go together,
// and which kinds of servers each of the maps accepts.
func complete(root *jsonschema.Schema, modules []schema.Section) {
	root.ID, root.Title = schema.Address, "dynmcp config"
	root.Description = "The config of dynmcp, which aggregates MCP servers: what servers there are, how they are limited, and how they are shown."
	for _, key := range []string{"mcp", "mcpServers", "servers", "tree"} {
		root.AnyOf = append(root.AnyOf, &jsonschema.Schema{Required: []string{key}})
	}
	server := root.Definitions["Server"]
	delete(root.Definitions, "Server")
	sandbox := property(server, "sandbox")
	sandbox.AnyOf = []*jsonschema.Schema{{Type: "boolean"}, {Ref: sandbox.Ref}}
	sandbox.Ref = ""

	profiles := property(root, "profiles")
	profiles.AdditionalProperties = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{property(root.Definitions["Profile"], "servers"), profiles.AdditionalProperties}}
	profiles.PropertyNames = &jsonschema.Schema{Pattern: schema.NamePattern}

	mcp := property(root, "mcp")
	fillServers(mcp, variants(server, modules, false))
	mcp.PropertyNames = &jsonschema.Schema{Pattern: schema.NamePattern}
	root.Definitions["HostServer"] = &jsonschema.Schema{
		Description: "A server as the configs of hosts have it.",
		OneOf:       variants(server, modules, true),
	}
	for _, key := range []string{"mcpServers", "servers"} {
		fillServers(property(root, key), []*jsonschema.Schema{{Ref: "#/$defs/HostServer"}})
	}

	limits := group(server, nil, "limit", "sandbox", "tls")
	limits.Description, limits.Examples = property(root, "defaults").Description, property(root, "defaults").Examples
	root.Properties.Set("defaults", limits)

	tree := property(root, "tree")
	node := &jsonschema.Schema{Ref: tree.Ref}
	tree.Ref = ""
	tree.AnyOf = []*jsonschema.Schema{{Type: "array", Items: node}, node}
}

func property(s *jsonschema.Schema, key string) *jsonschema.Schema {
	p, ok := s.Properties.Get(key)
	if !ok {
		panic("no property " + key)
	}
	return p
}

func fillServers(s *jsonschema.Schema, variants []*jsonschema.Schema) {
	if len(variants) == 1 {
		s.AdditionalProperties = variants[0]
		return
	}
	s.AdditionalProperties = &jsonschema.Schema{OneOf: variants}
	setExtra(s.AdditionalProperties, "defaultSnippets", []any{
		snippet("program", "A server that is a program: it starts when it is first used", map[string]any{
			"description": "${1:Verbs and the domain. Use when …}", "command": "${2:npx}", "args": []any{"-y", "${3:package}"},
		}),
		snippet("address", "A server at an address: it is connected to when it is first used", map[string]any{
			"description": "${1:Verbs and the domain. Use when …}", "url": "${2:https://mcp.example.com/mcp}",
		}),
	})
}

// snippet returns an editor's proposal for a new server.
func snippet(label, about string, body map[string]any) map[string]any {
	return map[string]any{"label": label, "description": about, "body": body}
}

// group returns an object with the keys of a server, modules' included, that are in the groups.
func group(server *jsonschema.Schema, modules []schema.Section, groups ...string) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	for _, t := range append([]schema.Section{{Type: reflect.TypeFor[schema.Server](), Server: true}}, modules...) {
		for i := 0; t.Server && i < t.Type.NumField(); i++ {
			tag := t.Type.Field(i).Tag
			if p, ok := server.Properties.Get(tag.Get("json")); ok && slices.Contains(groups, tag.Get("group")) {
				out.Properties.Set(tag.Get("json"), p)
			}
		}
	}
	return out
}

// variants returns the three kinds of server, and those of modules. Without a transport, a command means
// stdio and a url streamable-http, so only sse must be named.
func variants(server *jsonschema.Schema, modules []schema.Section, host bool) []*jsonschema.Schema {
	var common, others []schema.Section
	for _, m := range modules {
		if m.Transport != "" {
			others = append(others, m)
		} else {
			common = append(common, m)
		}
	}
	stdio := variant(server, common, schema.Stdio, "stdio", host)
	stdio.Required = []string{"command"}
	streamable := variant(server, common, schema.StreamableHTTP, "http", host)
	streamable.Required = []string{"url"}
	sse := variant(server, common, schema.SSE, "http", host)
	if host {
		sse.AnyOf = []*jsonschema.Schema{{Required: []string{"type", "url"}}, {Required: []string{"transport", "url"}}, switchedOff(server)}
		command := *property(stdio, "command")
		command.Type, command.Pattern = "", ""
		one := uint64(1)
		words := &jsonschema.Schema{Type: "array", MinItems: &one, Items: &jsonschema.Schema{Type: "string"}}
		command.AnyOf = []*jsonschema.Schema{{Type: "string", Pattern: `\S`}, words}
		stdio.Properties.Set("command", &command)
	} else {
		sse.AnyOf = []*jsonschema.Schema{{Required: []string{"transport", "url"}}, switchedOff(server)}
	}
	all := []*jsonschema.Schema{stdio, streamable, sse}
	for _, m := range others {
		own := group(server, append(common, m), "", "limit", "http", "tls")
		own.Properties.Delete("transport")
		own.Title, own.Required = m.Transport, required(m)
		all = append(all, own)
	}
	return all
}

// required returns the keys that a section requires.
func required(m schema.Section) (keys []string) {
	for f := range m.Type.Fields() {
		if f.Tag.Get("required") == "true" {
			keys = append(keys, f.Tag.Get("json"))
		}
	}
	return keys
}

// switchedOff is an entry that only disables the server of its name in a file further away.
// It is part of the last kind, because exactly one kind must match.
func switchedOff(server *jsonschema.Schema) *jsonschema.Schema {
	one := uint64(1)
	off := jsonschema.NewProperties()
	disabled := *property(server, "disabled")
	disabled.Const = true
	off.Set("disabled", &disabled)
	return &jsonschema.Schema{Required: []string{"disabled"}, Properties: off, MaxProperties: &one}
}

func variant(server *jsonschema.Schema, modules []schema.Section, transport, keys string, host bool) *jsonschema.Schema {
	groups := []string{"", "limit", keys}
	if keys == "stdio" {
		groups = append(groups, "sandbox")
	} else {
		groups = append(groups, "tls")
	}
	out := group(server, modules, groups...)
	out.Title = transport
	t := *property(server, "transport")
	t.Enum, t.Const, t.Examples = nil, transport, []any{transport}
	if host && transport == schema.StreamableHTTP {
		t.Const, t.Enum = nil, []any{transport}
		for _, alias := range schema.HTTPAliases {
			t.Enum = append(t.Enum, alias)
		}
	}
	out.Properties.Set("transport", &t)
	if host {
		alias := t
		alias.Description = "The word of other hosts for transport. " + t.Description
		out.Properties.Set("type", &alias)
	}
	return out
}
