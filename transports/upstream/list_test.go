package upstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A list is limited in pages, entries and bytes.
func TestListIsBounded(t *testing.T) {
	t.Parallel()
	large := `"` + strings.Repeat("x", 8<<20) + `",`
	for name, c := range map[string]struct {
		entries string // of a page, each with a comma
		pages   int    // 0 is without end
		want    string
	}{
		"the largest number":      {strings.Repeat("1,", maxEntries/maxPages), maxPages, ""},
		"one too many":            {strings.Repeat("1,", maxEntries+1), 1, "100000 entries"},
		"many on each page":       {strings.Repeat("1,", maxEntries/10), 0, "100000 entries"},
		"pages without end":       {"1,", 0, "100 pages"},
		"empty pages":             {"", 0, "100 pages"},
		"large pages":             {large, 0, "67108864 bytes"},
		"the last page too large": {large, 9, "67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			conn, _ := inMemory(t, schema.Server{}, ConnOptions{}, func(p *puppet, m wire.Message) {
				if !m.IsRequest() {
					return
				}
				next := ""
				if asked++; asked != c.pages {
					next = fmt.Sprintf(`,"nextCursor":"c%d"`, asked)
				}
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]%s}}`, m.ID, strings.TrimSuffix(c.entries, ","), next))
			})
			entries, err := conn.List(t.Context(), "tools/list", "tools", nil)
			if c.want == "" {
				if err != nil || len(entries) != maxEntries {
					t.Errorf("got %d entries, %v", len(entries), err)
				}
				return
			}
			if f := wantFailure(t, err, transports.CodeProtocol, transports.Executed); !strings.Contains(f.Error(), c.want) {
				t.Errorf("got %v, want %s", f, c.want)
			}
		})
	}
}
