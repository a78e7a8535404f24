package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

// worst are the servers whose generated descriptions read worst, of the 38 of the corpus and of those of
// livemcpbench: cut within a sentence, with a last word that says nothing, or in two languages.
var worst = []string{"azure", "azure-all", "kubernetes", "github", "bing-cn-mcp", "wuwa-mcp", "ygocdb", "Ant Design Components", "image-extractor", "maven-deps-server"}

func TestWorstProposals(t *testing.T) {
	t.Parallel()
	servers, listings := realServers(t)
	more, _, _ := labelled(t, "livemcpbench")
	var said []string
	for i, s := range servers {
		if slices.Contains(worst, s.Name) {
			said = append(said, s.Name+": "+one(s, listings[i]).Texts().Proposal(s.Name, ""))
		}
	}
	for _, info := range more.Servers() {
		if slices.Contains(worst, info.Name) {
			said = append(said, info.Name+": "+more.Texts().Proposal(info.Name, ""))
		}
	}
	golden(t, "worst_proposals", strings.Join(said, "\n"))
}

// leadOn are words after which a text goes on.
var leadOn = strings.Fields("for to of with in on at by from via using and or the a an that which whose when if as into")

// TestProposalsEndWell checks the ends of all descriptions: no word is cut, and none ends with a word that leads on.
func TestProposalsEndWell(t *testing.T) {
	t.Parallel()
	servers, listings := realServers(t)
	said := map[string]string{}
	for i, s := range servers {
		said[s.Name] = one(s, listings[i]).Texts().Proposal(s.Name, "")
	}
	more, _, _ := labelled(t, "livemcpbench")
	for _, info := range more.Servers() {
		said[info.Name] = more.Texts().Proposal(info.Name, "")
	}
	if len(said) < 100 {
		t.Fatalf("%d servers are described", len(said))
	}
	for name, text := range said {
		words := strings.Fields(strings.TrimRight(text, ".。"))
		if len(words) == 0 {
			t.Errorf("%s: no words", name)
			continue
		}
		last := words[len(words)-1]
		if display.Units(text) > 160 || strings.ContainsAny(text, "…\n") || slices.Contains(leadOn, strings.ToLower(last)) || strings.HasSuffix(last, ",") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
