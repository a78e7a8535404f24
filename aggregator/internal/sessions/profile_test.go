package sessions

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// docs/hosts.md has the table of this package.
func TestHostsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	var data []string
	for name, p := range hostProfiles {
		list, auto := "changes", "discover"
		if p.Freezes {
			list = "stays"
		}
		if p.Searches {
			auto = "direct"
		}
		if p.ReadsData {
			data = append(data, "`"+name+"`")
		}
		row := fmt.Sprintf("| `%s` | `%s`… | %s | %s | `%s` | %d |", name, p.client, p.StartupWait, list, auto, p.Longest())
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/hosts.md has no row %q", row)
		}
	}
	slices.Sort(data)
	if line := "adds [data](surfaces.md#discover) for " + strings.Join(data, ", ") + "."; !strings.Contains(string(text), line) {
		t.Errorf("docs/hosts.md has no line that ends in %q", line)
	}
}
