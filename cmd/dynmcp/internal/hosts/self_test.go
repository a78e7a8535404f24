package hosts

import (
	"os"
	"strings"
	"testing"

	"dynmcp/schema"
)

// Taken over, dynmcp would start itself: it is known however it is started. In
// front of a single command it is left out.
func TestDynmcpAmongServers(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const itself = "dynmcp itself"
	for line, want := range map[string]string{ // words are separated by |
		"dynmcp":                            itself,
		"/opt/dynmcp.exe|-c|mcp.json":       itself,
		own + "|-c|mcp.json":                itself,
		"env|A=b|dynmcp|-c|mcp.json":        itself,
		"npx|-y|dynmcp@1.2.3|-c|mcp.json":   itself,
		"cmd|/c|npx|dynmcp|-c|mcp.json":     itself,
		"go|run|./cmd/dynmcp|-c|mcp.json":   itself,
		"sh|-c|exec dynmcp -c mcp.json":     itself,
		"dynmcp|--|dynmcp|-c|mcp.json":      itself,
		"dynmcp|--":                         itself,
		"dynmcp|--|npx|-y|x|--":             "npx|-y|x|--",
		"npx|dynmcp|--expose|direct|--|x|y": "x|y",
		"env|A=b|dynmcp|--|x|y":             "env|A=b|x|y",
		"dynmcp|--|dynmcp|--strict|--|x":    "x",
		own + "|--|x":                       "x",
		"npx|-y|files-mcp|/home/me/dynmcp":  "npx|-y|files-mcp|/home/me/dynmcp",
		"x|dynmcp":                          "x|dynmcp",
		"sh|-c|exec dynmcp -- x":            "sh|-c|exec dynmcp -- x",
		"sh|-c|exec x --config dynmcp":      "sh|-c|exec x --config dynmcp",
		"sh|script.sh|dynmcp":               "sh|script.sh|dynmcp",
	} {
		words := strings.Split(line, "|")
		s := Server{Server: schema.Server{Transport: schema.Stdio, Command: words[0], Args: words[1:]}}
		s.unwrap()
		got := strings.Join(s.commandLine(), "|")
		if noted := len(s.Notes) > 0; noted != (got != line) {
			t.Errorf("%s: became %s, with the notes %q", line, got, s.Notes)
		}
		if s.IsDynmcp() {
			got = itself
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}
