// Package callheader sets the HTTP headers that repeat the subject of a call for proxies (MCP
// 2026-07-28, "Streamable HTTP", request headers).
package callheader

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Bindings are the arguments that are copied to headers, by tool.
type Bindings map[string][]binding

// Of returns the bindings of listed tools: arguments marked with x-mcp-header in their schemas.
func Of(tools []json.RawMessage) Bindings {
	all := Bindings{}
	for _, tool := range tools {
		name, _ := wire.Text(wire.Get(tool, "name"))
		if found := unambiguous(bindingsOf(wire.Get(tool, "inputSchema"), nil)); found != nil {
			all[name] = found
		}
	}
	return all
}

// Set sets the headers of a call.
func (all Bindings) Set(header http.Header, method string, params wire.Object) {
	header.Set("Mcp-Method", method)
	member := transports.NameMembers[method]
	if member == "" {
		return
	}
	name, _ := wire.Text(params.Get(member))
	header.Set("Mcp-Name", headerValue(name))
	if method != "tools/call" {
		return
	}
	for _, b := range all[name] {
		if value, ok := b.value(params.Get("arguments")); ok {
			header.Set("Mcp-Param-"+b.header, headerValue(value))
		}
	}
}

// headerValue returns text as a header value, encoded if necessary.
func headerValue(text string) string {
	plain := strings.TrimSpace(text) == text && !strings.HasPrefix(text, "=?base64?")
	for _, r := range text {
		plain = plain && r >= 0x20 && r < 0x7f
	}
	if plain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// A binding is an argument of a tool that is also sent in a header.
type binding struct {
	path   []string
	header string
}

func bindingsOf(schema []byte, path []string) []binding {
	var all []binding
	for key, property := range wire.Members(wire.Get(schema, "properties")) {
		name, _ := wire.Text(key)
		here := append(path[:len(path):len(path)], name)
		if header, ok := wire.Text(wire.Get(property, "x-mcp-header")); ok && isToken(header) {
			all = append(all, binding{here, header})
		}
		all = append(all, bindingsOf(property, here)...)
	}
	return all
}

// unambiguous removes the bindings whose header several arguments claim, ignoring case.
func unambiguous(all []binding) []binding {
	claims := map[string]int{}
	for _, b := range all {
		claims[strings.ToLower(b.header)]++
	}
	return slices.DeleteFunc(all, func(b binding) bool { return claims[strings.ToLower(b.header)] > 1 })
}

// isToken reports whether s may be part of a header's name (RFC 9110, 5.6.2).
func isToken(s string) bool {
	const characters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.Trim(s, characters) == ""
}

// value returns the argument as header text. Only strings, booleans and integers that every
// JSON reader represents exactly qualify.
func (b binding) value(arguments []byte) (string, bool) {
	value := arguments
	for _, name := range b.path {
		value = wire.Get(value, name)
	}
	if text, ok := wire.Text(value); ok {
		return text, true
	}
	switch text := string(value); {
	case text == "true" || text == "false":
		return text, true
	case wire.ValidID(value) && len(strings.TrimPrefix(text, "-")) <= 16:
		return text, true
	}
	return "", false
}
