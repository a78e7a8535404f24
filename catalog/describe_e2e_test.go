//go:build e2e

package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

// TestDescribeFillsItsBound describes configs of 1 to 100 servers. If something is cut, nine
// tenths of the limit are used, and one more server takes little more than its share from the
// others.
func TestDescribeFillsItsBound(t *testing.T) {
	t.Parallel()
	const bound = 2048
	for name := range largeConfigs {
		before, lines := 0, 0
		for n, v := range prefixesOf(name) {
			s := v.Texts().Describe(bound)
			if size := display.Units(s); size > bound || size < bound*9/10 && s != v.Texts().Describe(0) {
				t.Errorf("%s: %d servers: %d of %d units are used:\n%s", name, n, size, bound, s)
			}
			both := s + v.Texts().DescribeRest("", bound)
			for i := range n {
				if !strings.Contains(both, fmt.Sprintf("server-%02d", i)) && !strings.Contains(s, " more: discover_tool") {
					t.Errorf("%s: %d servers: server %d is missing, and no line counts missing ones:\n%s", name, n, i, s)
				}
			}
			said, shown := wordsShown(v, s), strings.Count(s, "\n- ")
			// One more server may take its line, and a share of the words.
			if share := before/n + 60; n > 1 && said < before-share && shown >= lines {
				t.Errorf("%s: the server numbered %d costs %d units of the others' words, its share is %d:\n%s", name, n, before-said, share, s)
			}
			before, lines = said, shown
		}
	}
}

// wordsShown counts the units of servers' words in a text.
func wordsShown(v *View, s string) int {
	sum, servers := 0, v.Servers()
	for line := range strings.Lines(s) {
		for _, info := range servers {
			for _, start := range []string{"- " + info.Name + ": ", info.Name + " ("} {
				if words, ok := strings.CutPrefix(line, start); ok {
					if i := strings.LastIndex(words, "):"); i >= 0 && start[0] != '-' {
						words = words[:i]
					}
					sum += display.Units(words)
				}
			}
		}
	}
	return sum
}
