package described

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
)

func TestJudge(t *testing.T) {
	c := catalog.New()
	c.Declare([]catalog.Server{
		{Name: "forge", Lazy: true, Description: "The best server that there is. Use for all of it, issues too."},
		{Name: "chat", Lazy: true, Description: "Issues of the week."}, {Name: "mail", Lazy: true, Description: "Issues by mail."}, {Name: "wiki", Lazy: true, Description: "Issues to read."},
	})
	listing := &catalog.Listing{}
	for _, tool := range []string{
		`{"name":"create_issue","description":"Create issues","inputSchema":{"type":"object"}}`,
		`{"name":"merge_branches","description":"Merge branches","inputSchema":{"type":"object"}}`,
	} {
		listing.Tools = append(listing.Tools, json.RawMessage(tool))
	}
	c.Put("forge", c.Index("forge", listing))
	all := judge(c.View(), func(string) string { return "" })
	var out bytes.Buffer
	write(terminal.New(&out), all[:2])
	want := `forge: The best server that there is. Use for all of it, issues too.
  among the first three for 0 of its 2 tools, by its first 28 characters for 0
  proposal: Create issues. Merge branches. Issues, merge branches: create
  among the first three for 2 of its 2 tools, by its first 28 characters for 2
chat: Issues of the week.
  its tools are not known: dynmcp warm chat lists them
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
