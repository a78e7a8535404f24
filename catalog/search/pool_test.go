package search

import "testing"

// The memory of a search refers to no tool afterwards: it would keep the listings of removed
// servers alive.
func TestSearchKeepsNoTools(t *testing.T) {
	tools := []*Tool{}
	for _, name := range []string{"open_page", "close_page", "read_page"} {
		tools = append(tools, &Tool{Name: "s/" + name, Server: "s", Leaf: name, Upstream: name, Terms: Terms(name)})
	}
	index := NewIndex(len(tools), func(i int) Doc { return Doc{Name: tools[i].Leaf} })
	c := NewCorpus([]Server{{Name: "s", Index: func() *Index { return index }, Tools: tools}}, func(string) bool { return false })

	q := &searching{}
	if !q.ask(c, "page") {
		t.Fatal("no tool has the word")
	}
	q.score(c.servers[0], q.spans)
	if found, _ := q.fit.best(2); len(found) != 2 {
		t.Fatalf("found %d tools, want 2", len(found))
	}
	q.done()
	for _, r := range q.fit[:cap(q.fit)] {
		if r.tool != nil {
			t.Errorf("the search still refers to %s", r.tool.Name)
		}
	}
}
