package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// load_mcp answers every host by the same text. Programs, and hosts that show their models nothing else,
// get the listing as data, too; any other host, known or not, does not, because it may show that in place
// of the text.
func TestLoadAnswersDataToPrograms(t *testing.T) {
	t.Parallel()
	later := deferred(t, "later", "Later")
	document := func(key string) string {
		return `{` + key + `"mcp":{"later":` + string(mcptest.Raw(later.fields)) + `}}`
	}
	var usual string
	for _, c := range []struct {
		client, key string
		data        bool
	}{
		{"t", "", false},
		{"claude-code", "", false},
		{"claude-ai", "", false},
		{"codex-mcp-client", "", false},
		{"copilot-cli", "", false},
		{"cursor-vscode", "", false},
		{"opencode", "", false},
		{"Visual Studio Code", "", false},
		{"gemini-cli-mcp-client", "", true},
		{"program of mine", "", true},
		{"t", `"host":"program",`, true},
		{"program", `"host":"claude-code",`, false},
	} {
		host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document(c.key)))
		greetAs(host, c.client)
		m := host.Tool("load_mcp", `{"mcp_name":"later"}`)
		if usual == "" {
			usual = m.Text()
		}
		if m.Text() != usual {
			t.Errorf("%s: got the text\n%s\nwant\n%s", c.client, m.Text(), usual)
		}
		var result struct {
			StructuredContent *struct {
				Name  string `json:"mcp_name"`
				Tools []struct {
					Name        string
					InputSchema any
				}
				Resources []struct{ URI string }
				Templates []struct{ URITemplate string } `json:"resource_templates"`
				Prompts   []struct{ Name string }
			}
		}
		if err := json.Unmarshal(m.Result, &result); err != nil {
			t.Fatal(err)
		}
		data := result.StructuredContent
		if (data != nil) != c.data {
			t.Errorf("%s %s: data: %t, want %t", c.client, c.key, data != nil, c.data)
		}
		if data != nil && (data.Name != "later" || len(data.Tools) < 5 || !strings.HasPrefix(data.Tools[0].Name, "later/") || data.Tools[0].InputSchema == nil ||
			len(data.Resources) == 0 || len(data.Templates) == 0 || len(data.Prompts) == 0) {
			t.Errorf("%s: got %s", c.client, m.Result)
		}
		if m := host.Tool("load_mcp", `{"mcp_name":"later","query":"echo"}`); m.Member("structuredContent") != nil {
			t.Errorf("%s: a query has data: %s", c.client, m.Result)
		}
	}
}
