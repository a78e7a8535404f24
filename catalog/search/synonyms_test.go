package search

import (
	"strings"
	"testing"
)

// TestFoundPairs checks that a pair of the list is two words of different stems, says its evidence, and is in
// no group.
func TestFoundPairs(t *testing.T) {
	n := 0
	for line := range strings.Lines(found) {
		words, evidence, _ := strings.Cut(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		pair := Terms(words)
		if len(pair) != 2 || !strings.Contains(evidence, "servers by texts") {
			t.Errorf("%q is not two words with their evidence", line)
			continue
		}
		for group := range strings.Lines(meanTheSame) {
			if set := SetOf(group); set[pair[0]] && set[pair[1]] {
				t.Errorf("%s are in the group %s", words, group)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d pairs, want at least 20", n)
	}
}

// TestEverydayWords searches by words that tools call differently.
func TestEverydayWords(t *testing.T) {
	tools := []string{"recall_notes", "purchase_ticket", "get_weather", "search_flight", "delete_person"}
	s := Server{Name: "s", About: func() []string { return nil }}
	for _, name := range tools {
		s.Tools = append(s.Tools, &Tool{Name: "s/" + name, Server: "s", Upstream: name, Leaf: name, Terms: Terms(name)})
	}
	x := NewIndex(len(tools), func(i int) Doc { return Doc{Name: tools[i]} })
	s.Index = func() *Index { return x }
	c := NewCorpus([]Server{s}, func(string) bool { return false })
	for query, want := range map[string]string{
		"remember":            "recall_notes",
		"conditions tomorrow": "get_weather",
		"fly to Rome":         "search_flight",
	} {
		if found, _ := c.Find(query, 1, ""); len(found) != 1 || found[0].Tool.Leaf != want {
			t.Errorf("%q finds %q, want %s", query, names(found), want)
		}
	}
}
