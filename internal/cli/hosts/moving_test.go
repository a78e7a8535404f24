package hosts

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

var update = flag.Bool("update", false, "write the table of docs/moving.md")

// moves are members of entries of aggregators, as their documentation shows them. A case
// without a command, an address or a container gets the command x.
var moves = []struct{ program, there string }{
	{"mcpproxy", `"name": "git-hub"`},
	{"mcpproxy", `"protocol": "http", "url": "https://h/mcp"`},
	{"mcpproxy", `"type": "sse", "url": "https://h/sse"`},
	{"mcpproxy", `"protocol": "http", "url": "http://h:7", "command": "x"`},
	{"mcpproxy", `"protocol": "auto", "working_dir": "/srv"`},
	{"mcpproxy", `"enabled": false`},
	{"mcpproxy", `"quarantined": true`},
	{"mcpproxy", `"env": {"TOKEN": "${keyring:token}"}`},
	{"mcpproxy", `"env": {"TOKEN": "${env:TOKEN}"}`},
	{"mcpproxy", `"url": "https://h", "oauth": {"client_id": "c", "scopes": ["repo"]}`},
	{"mcpproxy", `"isolation": {"enabled": true}`},
	{"mcpproxy", `"enabled_tools": ["a"], "disabled_tools": ["b"]`},
	{"1mcp", `"tags": ["web", "local"]`},
	{"1mcp", `"connectionTimeout": 5000, "requestTimeout": 15000`},
	{"1mcp", `"env": ["PATH", "MODE=batch"]`},
	{"1mcp", `"envFilter": ["PATH", "!SECRET_*"]`},
	{"1mcp", `"restartOnExit": true, "maxRestarts": 5`},
	{"1mcp", `"transport": "http", "url": "https://h/mcp"`},
	{"metamcp", `"type": "STREAMABLE_HTTP", "url": "https://h/mcp"`},
	{"metamcp", `"url": "https://h", "bearerToken": "${TOKEN}"`},
	{"metamcp", `"url": "https://h", "oauth_client_info": {"client_id": "c", "scope": "api"}`},
	{"mcp-proxy", `"url": "https://h/sse"`},
	{"mcp-proxy", `"url": "https://h", "transportType": "streamable-http"`},
	{"mcp-proxy", `"options": {"toolFilter": {"mode": "block", "list": ["a"]}}`},
	{"mcp-proxy", `"options": {"disabled": true}`},
	{"mcp-proxy", `"options": {"authTokens": ["t"]}`},
	{"gridctl", `image: a/b:1, transport: stdio`},
	{"gridctl", `env: {T: "${var:T}"}`},
	{"gridctl", `image: a/b:1, port: 3000`},
	{"gridctl", `source: {type: pypi, package: p, ref: 1.0.0}`},
	{"gridctl", `source: {type: git, url: "https://h/b.git"}`},
	{"gridctl", `command: [npx, -y, x], tools: [a]`},
	{"gridctl", `url: "https://h", auth: {type: bearer, token: "${T}"}`},
	{"gridctl", `url: "https://h", auth: {type: header, header: X-Key, value: "${T}"}`},
	{"gridctl", `ssh: {host: h, user: u}, command: [x]`},
	{"gridctl", `openapi: {spec: "https://h/openapi.json"}`},
	{"gridctl", `replicas: 3`},
}

// TestTableOfMoving compares the table of docs/moving.md with what import makes of the cases.
func TestTableOfMoving(t *testing.T) {
	var table strings.Builder
	table.WriteString("| from | there | here |\n|---|---|---|\n")
	for _, m := range moves {
		fmt.Fprintf(&table, "| %s | `%s` | %s |\n", m.program, m.there, moved(t, m.program, m.there))
	}
	table.WriteString("\n")
	page := filepath.FromSlash("../../../docs/moving.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- what import makes of entries; go test ./internal/cli/hosts -update -->\n\n", "<!-- end -->"
	before, rest, ok1 := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	if old == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s is not what import does (-update writes it); want\n%s", page, table.String())
	}
	if err := os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// moved returns the translation of an entry, without the members that every case has.
func moved(t *testing.T, program, there string) string {
	t.Helper()
	based := !strings.Contains(there, "command") && !strings.Contains(there, "url") && !strings.Contains(there, "image") && !strings.Contains(there, "source") && !strings.Contains(there, "openapi")
	members := there
	if based {
		members = `"command": "x", ` + there
		if program == "gridctl" {
			members = "command: [x], " + there
		}
	}
	withName := members
	if !strings.Contains(there, `"name"`) {
		withName = `"name": "a", ` + members
	}
	text := map[string]string{
		"mcpproxy": `{"mcpServers": [{` + withName + `}]}`,
		"gridctl":  `mcp-servers: [{name: a, ` + members + `}]`,
	}[program]
	name := "a.yaml"
	if text == "" {
		text = `{"mcpServers": {"a": {` + members + `}}}`
	}
	if program != "gridctl" {
		name = "a.json"
	}
	h := named(program)
	servers, _, err := h.parse(name, []byte(text))
	if err != nil || len(servers) != 1 {
		t.Fatalf("%s: %d servers, %v", there, len(servers), err)
	}
	s := servers[0]
	if why := s.Problem(); why != "" {
		return "left out"
	}
	out, err := schema.SetServer("a.json", []byte("{}"), s.Server)
	if err != nil {
		t.Fatal(err)
	}
	root, err := (&syntax.Source{Name: "a.json", Data: out}).Parse()
	if err != nil {
		t.Fatal(err)
	}
	var here []string
	for _, m := range root.Get("mcp").Get(s.Name).Members {
		plain := m.Value.Inline()
		if m.Key == "transport" && plain == `"stdio"` || based && m.Key == "command" {
			continue
		}
		here = append(here, fmt.Sprintf("%q: %s", m.Key, plain))
	}
	if strings.Contains(there, `"name"`) {
		here = append(here, fmt.Sprintf("%q: {…}", s.Name))
	}
	if len(s.Sets) > 0 {
		here = append(here, `"profiles": {"`+strings.Join(s.Sets, `": ["a"], "`)+`": ["a"]}`)
	}
	cell := "`" + strings.Join(here, ", ") + "`"
	if len(here) == 0 {
		cell = "nothing"
	}
	if slices.ContainsFunc(s.Notes, func(note string) bool { return !strings.HasPrefix(note, "it is called") }) {
		cell += ", with a note"
	}
	return cell
}

// The path of a gridctl program is relative to its file, wherever the config is.
func TestProgramBesideItsFile(t *testing.T) {
	dir := t.TempDir()
	h := named("gridctl")
	servers, _, err := h.parse(filepath.Join(dir, "stack.yaml"), []byte("mcp-servers: [{name: a, command: [../bin/a, b/c]}, {name: b, command: [npx, x]}]"))
	if err != nil || len(servers) != 2 {
		t.Fatal(servers, err)
	}
	if want := filepath.Join(filepath.Dir(dir), "bin", "a"); servers[0].Command != want || servers[0].Args[0] != "b/c" || servers[1].Command != "npx" {
		t.Errorf("got %q %q and %q, want %q", servers[0].Command, servers[0].Args, servers[1].Command, want)
	}
}
