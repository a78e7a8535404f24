package tokenscmd

import (
	"slices"
	"testing"
)

// The lines of a server are found in every level of detail of the catalogue.
func TestLinesOfAServer(t *testing.T) {
	t.Parallel()
	const catalogue = "Some servers are not loaded.\n\n<mcp_servers>\n- git: Reads history.\n- files\n</mcp_servers>\n\n" +
		"<tools>\nweb:\n- web/open: Open a page.\n- web/close: Close it.\ngithub: add_issue, list_issues\nlarge: 235 tools\n</tools>\n"
	for server, want := range map[string][]string{
		"git":    {"- git: Reads history.\n"},
		"files":  {"- files\n"},
		"web":    {"web:\n", "- web/open: Open a page.\n", "- web/close: Close it.\n"},
		"github": {"github: add_issue, list_issues\n"},
		"large":  {"large: 235 tools\n"},
		"lar":    nil,
	} {
		if got := linesOf(catalogue, server); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", server, got, want)
		}
	}
}
