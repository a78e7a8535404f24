package catalog

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/catalog/search"
)

// proposed returns lazy declarations of the servers, described by their proposals.
func proposed(servers []Server, listings map[string]*Listing) []Server {
	v := loadedWith(servers, listings).View()
	var lazy []Server
	for _, s := range servers {
		lazy = append(lazy, Server{Name: s.Name, Lazy: true, Description: v.Texts().Proposal(s.Name, "")})
	}
	return lazy
}

// shownOf returns the words of each server in the descriptions of a catalogue.
func shownOf(servers []Server, maxChars int) map[string]string {
	c := New()
	c.Declare(servers)
	shown := map[string]string{}
	for line := range strings.Lines(c.View().Texts().Describe(maxChars) + "\n" + c.View().Texts().DescribeRest("", maxChars)) {
		if line, ok := strings.CutPrefix(line, "- "); ok {
			name, words, _ := strings.Cut(strings.TrimSpace(line), ":")
			shown[name] = words
		}
	}
	return shown
}

// amongThree returns the share of queries for which a right server is among the best three,
// judged by the words shown.
func amongThree(shown map[string]string, queries []question) float64 {
	var names []string
	for name := range shown {
		names = append(names, name)
	}
	slices.Sort(names)
	hits := 0
	for _, q := range queries {
		best := search.Rank(q.Query, names, func(name string) map[string]float64 {
			counts := map[string]float64{}
			search.Words(name+" "+shown[name], func(w string) { counts[w]++ })
			return counts
		})
		best = best[:min(len(best), 3)]
		if slices.ContainsFunc(best, func(name string) bool { return slices.Contains(q.Gold[0], name) }) {
			hits++
		}
	}
	return float64(hits) / float64(len(queries))
}

// tasksOfServers reads the tasks of package describe.
func tasksOfServers(t testing.TB) (all []question) {
	text, err := os.ReadFile("describe/testdata/tasks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if query, gold, ok := strings.Cut(line, " | "); ok && !strings.HasPrefix(line, "#") {
			all = append(all, question{Query: query, Gold: [][]string{strings.Fields(gold)}})
		}
	}
	return all
}

// byHand returns the real servers with descriptions written by a person.
func byHand(t testing.TB) (lazy []Server) {
	text, err := os.ReadFile("describe/testdata/written.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, about, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
			lazy = append(lazy, Server{Name: name, Lazy: true, Description: about})
		}
	}
	return lazy
}

// TestProposalsFindTheServer measures how well proposed descriptions tell servers apart,
// whole and in the 2,048 characters that hosts pass on. Floors are a little below the
// measured values.
func TestProposalsFindTheServer(t *testing.T) {
	t.Parallel()
	servers, listings := realServers(t)
	listed := map[string]*Listing{}
	for i, s := range servers {
		listed[s.Name] = listings[i]
	}
	real := proposed(servers, listed)

	v, ids, questions := labelled(t, "livemcpbench")
	var others []Server
	of := map[string]string{} // id of a tool → its server
	for _, tool := range v.Tools() {
		of[ids[tool.Name]] = tool.Server
	}
	for _, info := range v.Servers() {
		if listed[info.Name] == nil {
			others = append(others, Server{Name: info.Name, Lazy: true, Description: v.Texts().Proposal(info.Name, "")})
		}
	}
	for i, q := range questions {
		var right []string
		for _, ok := range q.Gold {
			for _, id := range ok {
				right = append(right, of[id])
			}
		}
		questions[i].Gold = [][]string{right}
	}
	slices.SortStableFunc(others, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	hundred := slices.Concat(real, others[:100-len(real)])
	for _, c := range []struct {
		name     string
		servers  []Server
		queries  []question
		maxChars int
		floor    float64
	}{
		{"38 servers by hand, whole", byHand(t), tasksOfServers(t), 0, 0},
		{"38 servers by hand", byHand(t), tasksOfServers(t), 2048, 0},
		{"38 servers, whole", real, tasksOfServers(t), 0, .88},
		{"38 servers", real, tasksOfServers(t), 2048, .68}, // names in the first sentence take room from words
		{"100 servers, whole", hundred, tasksOfServers(t), 0, .80},
		{"100 servers", hundred, tasksOfServers(t), 2048, .35},
		{"livemcpbench, whole", others, questions, 0, .60},
		{"livemcpbench", others, questions, 2048, .59},
	} {
		got := amongThree(shownOf(c.servers, c.maxChars), c.queries)
		t.Logf("%s: the right one of %d is among three for %.2f of %d tasks", c.name, len(c.servers), got, len(c.queries))
		if got < c.floor {
			t.Errorf("%s: %.2f, want at least %.2f", c.name, got, c.floor)
		}
	}
}
