package search

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A wish is a query, and the tool that it should find.
type wish struct{ query, tool string }

// small reads the servers and the wishes of testdata/small.txt.
func small(t *testing.T) (c *Corpus, wishes []wish) {
	t.Helper()
	text, err := os.ReadFile("testdata/small.txt")
	if err != nil {
		t.Fatal(err)
	}
	var servers []Server
	docs := map[string][]Doc{}
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSpace(line), " | ")
		switch {
		case parts[0] == "" || line[0] == '#':
		case line[0] == '?':
			wishes = append(wishes, wish{strings.TrimPrefix(parts[0], "? "), parts[1]})
		case line[0] == '\t':
			s := &servers[len(servers)-1]
			s.Tools = append(s.Tools, &Tool{Name: s.Name + "/" + parts[0], Server: s.Name, Upstream: parts[0], Leaf: parts[0], Terms: Terms(parts[0])})
			docs[s.Name] = append(docs[s.Name], Doc{Name: parts[0], Description: strings.TrimSuffix(parts[1], " |"), Input: schemaOf(parts[2:])})
		default:
			servers = append(servers, Server{Name: parts[0], Terms: Terms(parts[0])})
		}
	}
	for i := range servers {
		own := docs[servers[i].Name]
		x := NewIndex(len(own), func(i int) Doc { return own[i] })
		servers[i].Index = func() *Index { return x }
	}
	return NewCorpus(servers, func(string) bool { return false }), wishes
}

// schemaOf makes an input schema of "name: words, name".
func schemaOf(arguments []string) []byte {
	var properties []string
	for _, a := range strings.FieldsFunc(strings.Join(arguments, ""), func(r rune) bool { return r == ',' || r == ';' }) {
		name, says, _ := strings.Cut(strings.TrimSpace(a), ":")
		properties = append(properties, fmt.Sprintf(`%q:{"description":%q}`, name, says))
	}
	return []byte(`{"properties":{` + strings.Join(properties, ",") + `}}`)
}

// TestSmallSet measures the quality of search where there are no real catalogues. With these,
// the tests of package catalog count for more. bench/finding checks that this test detects
// faults of the ranking.
func TestSmallSet(t *testing.T) {
	c, wishes := small(t)
	first, three := 0, 0
	for _, w := range wishes {
		found, _ := c.Find(w.query, 3, "")
		place := slices.IndexFunc(found, func(m Match) bool { return m.Tool.Name == w.tool })
		if place == 0 {
			first++
		} else {
			t.Logf("%q: %s is in place %d of %s", w.query, w.tool, place+1, names(found))
		}
		if place >= 0 {
			three++
		}
	}
	t.Logf("of %d wishes %d find their tool first, %d among three", len(wishes), first, three)
	if len(wishes) != 58 || first < 51 || three < 57 {
		t.Error("want 51 first and 57 among three, of 58")
	}
}

func names(found []Match) (list []string) {
	for _, m := range found {
		list = append(list, m.Tool.Name)
	}
	return list
}
