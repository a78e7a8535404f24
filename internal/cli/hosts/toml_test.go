package hosts

import (
	"strings"
	"testing"
)

// A table is replaced by lines, and all other bytes stay. Notations that lines cannot
// replace are refused.
func TestSetTOML(t *testing.T) {
	path := []string{"mcp_servers", "dynmcp"}
	body := []string{`command = "new"`}
	const table = "[mcp_servers.dynmcp]\ncommand = \"new\"\n"
	for name, c := range map[string]struct{ in, want string }{
		"empty":              {"", table},
		"behind":             {"a = 1\n", "a = 1\n\n" + table},
		"no line end":        {"a = 1", "a = 1\n\n" + table},
		"replaced":           {"# a\n[mcp_servers.dynmcp] # b\ncommand = \"old\"\nargs = [\n  'x', # c\n]\n\n# d\n[z]\n", "# a\n" + table + "\n# d\n[z]\n"},
		"with tables inside": {"[mcp_servers.dynmcp]\ncommand = 'old'\n[mcp_servers.dynmcp.env]\nA = '''\n[no]\n'''\n[mcp_servers.other]\nenv = {A = 'b'}\n", table + "[mcp_servers.other]\nenv = {A = 'b'}\n"},
		"quoted":             {"[ mcp_servers . \"dynmcp\" ]\nx = 1\n", table},
		"inline":             {"mcp_servers = {dynmcp = {command = 'old'}}\n", ""},
		"dotted":             {"mcp_servers.dynmcp.command = 'old'\n", ""},
		"broken":             {"[x\n", ""},
	} {
		got, err := setTOML([]byte(c.in), path, body)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: was changed to %q", name, got)
			}
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// Secrets in Codex's config are masked.
func TestMaskTOML(t *testing.T) {
	const text = `
[mcp_servers.a]
command = "shown"
args = ["--token", "hidden", "shown"]
env = { K = "hidden", "L.M" = 'hidden' }
url = "https://a.test/?k=hidden"
[mcp_servers.a.env]
N = """
hidden
hidden"""
[mcp_servers.b]
http_headers.X = "hidden"
bearer_token = "hidden"
`
	got := string(maskTOML([]byte(text)))
	if strings.Contains(got, "hidden") || strings.Count(got, "shown") != 2 || strings.Count(got, "\n") != strings.Count(text, "\n") {
		t.Errorf("shown as\n%s", got)
	}
	if got := maskTOML([]byte("x = \"s3cret")); got != nil {
		t.Errorf("a broken file is shown as %q", got)
	}
}
