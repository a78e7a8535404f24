package hosts

import (
	"os"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
)

// An entry that runs dynmcp is recognized however it is written, because dynmcp would start
// itself otherwise. In front of a single command it is left out.
func TestDynmcpAmongServers(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const itself = "dynmcp itself"
	const other = "another program called dynmcp, whose config dynmcp reads with -c"
	for line, want := range map[string]string{ // words are separated by |
		"dynmcp":                            itself,
		"/opt/dynmcp.exe|-c|mcp.json":       itself,
		own + "|-c|mcp.json":                itself,
		"env|A=b|dynmcp|-c|mcp.json":        itself,
		"npx|-y|@dynmcp/dynmcp|-c|mcp.json": itself,
		"bunx|@dynmcp/dynmcp@1.2.3":         itself,
		"npx|-p|@dynmcp/dynmcp|dynmcp|-c|x": itself,

		"npx|--package=@dynmcp/dynmcp@1|dynmcp|-c|mcp.json": itself,

		"cmd|/c|npx|@dynmcp/dynmcp|-c|mcp":  itself,
		"npx|/home/me/dynmcp|-c|mcp.json":   itself,
		"npx|-y|dynmcp@1.2.3|-c|mcp.json":   other,
		"cmd|/c|npx|dynmcp|-c|mcp.json":     other,
		"npx|--package=other|dynmcp|mcp":    other,
		"npx|@other/dynmcp|-c|mcp.json":     "npx|@other/dynmcp|-c|mcp.json",
		"npx|@dynmcp/dynmcp-x|-c|mcp.json":  "npx|@dynmcp/dynmcp-x|-c|mcp.json",
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
		if what := s.Aggregator(); what != "" {
			got = what
		}
		if _, ours := DynmcpArgs(s.Command, s.Args); ours != (want == itself) {
			t.Errorf("%s: got %t for dynmcp itself", line, ours)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// A command that runs mcp-remote with nothing but an address becomes the address.
func TestRelaysBecomeAddresses(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y mcp-remote https://mcp.example.test/sse":                       "https://mcp.example.test/sse",
		"npx mcp-remote@latest https://mcp.example.test/mcp":                   "https://mcp.example.test/mcp",
		"mcp-remote http://localhost:8080/mcp":                                 "http://localhost:8080/mcp",
		"bunx mcp-remote https://mcp.example.test/mcp":                         "https://mcp.example.test/mcp",
		"npx -y mcp-remote https://mcp.example.test/mcp --header X-Key:secret": "",
		"npx -y mcp-remote https://mcp.example.test/mcp 3334":                  "",
		"npx -y mcp-remote": "",
		"npx -y mcp-remote-helper https://mcp.example.test/mcp": "",
		"npx -y other https://mcp.example.test/mcp":             "",
		"npx -y mcp-remote ${ADDRESS}":                          "",
	} {
		words := strings.Fields(line)
		s := Server{Server: schema.Server{Transport: schema.Stdio, Command: words[0], Args: words[1:]}}
		s.withoutRelay()
		if s.URL != want || (want == "") != (s.Command != "") || (want == "") != (len(s.Notes) == 0) {
			t.Errorf("%s: got url %q, command %q, notes %q", line, s.URL, s.Command, s.Notes)
		}
	}
	s := Server{Server: schema.Server{Command: "npx", Args: []string{"mcp-remote", "https://x.test"}, Env: map[string]string{"HTTPS_PROXY": "p"}}}
	if s.withoutRelay(); s.URL != "" {
		t.Error("variables were lost")
	}
}
