package catalog

import (
	"slices"
	"strings"
	"testing"
)

// worst are the servers whose generated descriptions read worst, of the 38 of the corpus and of those of
// livemcpbench: cut within a sentence, with a last word that says nothing, or in two languages.
var worst = []string{"azure", "azure-all", "kubernetes", "github", "context7", "postgres", "bing-cn-mcp", "ygocdb", "image-extractor", "time"}

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
