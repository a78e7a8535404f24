package keys

import (
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/hostfile"
)

// complete adds the rules that Go types cannot express: which keys of a server go together,
// and which kinds of servers each of the maps accepts.
func complete(root *jsonschema.Schema, modules []schema.Section) {
	root.ID, root.Title = schema.Address, "dynmcp config"
	root.Description = "The config of dynmcp, which aggregates MCP servers: what servers there are, how they are limited, and how they are shown."
	root.Properties.Set("context_servers", &jsonschema.Schema{Type: "object", Description: "The MCP servers by name, as Zed writes them.",
		Examples: []any{map[string]any{"files": map[string]any{"command": "mcp-files", "args": []any{"/tmp"}}}}})
	root.Properties.Set("inputs", &jsonschema.Schema{Type: "array", Description: "What VS Code asks for: ${input:ID} is the variable ID here, with the default of its input.",
		Examples: []any{[]any{map[string]any{"id": "key", "type": "promptString", "default": "none"}}}})
	for _, key := range []string{"mcp", "mcpServers", "servers", "context_servers", "tree"} {
		root.AnyOf = append(root.AnyOf, &jsonschema.Schema{Required: []string{key}})
	}
	server := root.Definitions["Server"]
	delete(root.Definitions, "Server")
	for _, m := range modules {
		for f := range m.Type.Fields() {
			if of := root; f.Type.Implements(reflect.TypeFor[schema.Switch]()) || reflect.PointerTo(f.Type).Implements(reflect.TypeFor[schema.Switch]()) {
				if m.Server {
					of = server
				}
				p := property(of, f.Tag.Get("json"))
				p.AnyOf = []*jsonschema.Schema{{Type: "boolean"}, {Ref: p.Ref}}
				p.Ref = ""
			}
		}
	}
	credentials := property(server, "credentials")
	credentials.AnyOf = []*jsonschema.Schema{{Type: "string", Enum: []any{schema.CredentialsShared, schema.CredentialsUser}}, {Ref: credentials.Ref}}
	credentials.Ref = ""

	profiles := property(root, "profiles")
	profiles.AdditionalProperties = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{property(root.Definitions["Profile"], "servers"), profiles.AdditionalProperties}}
	profiles.PropertyNames = &jsonschema.Schema{Pattern: schema.NamePattern}

	mcp := property(root, "mcp")
	fillServers(mcp, variants(server, modules))
	mcp.PropertyNames = &jsonschema.Schema{Pattern: schema.NamePattern}
	root.Definitions["HostServer"] = hostServer(server)
	for _, key := range []string{"mcpServers", "servers", "context_servers"} {
		fillServers(property(root, key), []*jsonschema.Schema{{Ref: "#/$defs/HostServer"}})
	}

	limits := group(server, modules, "limit", "sandbox", "tls")
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
		if !t.Server {
			continue
		}
		for field := range t.Type.Fields() {
			tag := field.Tag
			if p, ok := server.Properties.Get(tag.Get("json")); ok && slices.Contains(groups, tag.Get("group")) {
				out.Properties.Set(tag.Get("json"), p)
			}
		}
	}
	return out
}

// hostServer returns the schema of a server as hosts write it: dynmcp's keys, and those of the table of
// hosts. Others are left out by dynmcp, and are no error.
func hostServer(server *jsonschema.Schema) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "object", Description: "A server as the configs of hosts have it.", Properties: jsonschema.NewProperties()}
	for pair := server.Properties.Oldest(); pair != nil; pair = pair.Next() {
		out.Properties.Set(pair.Key, pair.Value)
	}
	for _, key := range hostfile.Keys() {
		p := &jsonschema.Schema{Description: "A key of hosts."}
		if own, ok := server.Properties.Get(key); ok {
			p = &jsonschema.Schema{Description: own.Description, Default: own.Default, Examples: own.Examples}
		}
		out.Properties.Set(key, p)
	}
	one := uint64(1)
	property(out, "command").AnyOf = []*jsonschema.Schema{{Type: "string"}, {Type: "array", MinItems: &one}, {Type: "object"}}
	property(out, "type").AnyOf = []*jsonschema.Schema{{Pattern: hostfile.TransportPattern()}, {Type: "null"}}
	return out
}

// variants returns the three kinds of server, and those of modules. Without a transport, a command means
// stdio and a url streamable-http, so only sse must be named.
func variants(server *jsonschema.Schema, modules []schema.Section) []*jsonschema.Schema {
	var common, others []schema.Section
	for _, m := range modules {
		if m.Transport != "" {
			others = append(others, m)
		} else {
			common = append(common, m)
		}
	}
	stdio := variant(server, common, schema.Stdio, "stdio")
	stdio.Required = []string{"command"}
	streamable := variant(server, common, schema.StreamableHTTP, "http")
	streamable.AnyOf = []*jsonschema.Schema{{Required: []string{"url"}}, {Required: []string{"openapi"}}}
	sse := variant(server, common, schema.SSE, "http")
	sse.AnyOf = []*jsonschema.Schema{{Required: []string{"transport", "url"}}, switchedOff(server)}
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

func variant(server *jsonschema.Schema, modules []schema.Section, transport, keys string) *jsonschema.Schema {
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
	out.Properties.Set("transport", &t)
	return out
}
