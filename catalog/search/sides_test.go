package search

import "testing"

// first returns the best tool for a query, by the names of tools alone.
func first(t *testing.T, query string, servers map[string][]string) string {
	t.Helper()
	var all []Server
	for _, name := range []string{"alpha", "postgres"} {
		var tools []*Tool
		for _, leaf := range servers[name] {
			tools = append(tools, &Tool{Name: name + "/" + leaf, Server: name, Upstream: leaf, Leaf: leaf, Terms: Terms(leaf)})
		}
		index := NewIndex(len(tools), func(i int) Doc { return Doc{Name: tools[i].Leaf} })
		all = append(all, Server{Name: name, Terms: Terms(name), Index: func() *Index { return index }, Tools: tools})
	}
	found, _ := NewCorpus(all, func(string) bool { return false }).Find(query, 1, "")
	if len(found) == 0 {
		return ""
	}
	return found[0].Tool.Name
}

func TestTheOppositeDoesNotWin(t *testing.T) {
	flags := map[string][]string{"alpha": {"create_flag", "update_flag_state_per_project", "delete_flag_in_project"}}
	for query, want := range map[string]string{
		"turn the flag off": "alpha/update_flag_state_per_project",
		"delete a flag":     "alpha/delete_flag_in_project",
		"create a flag":     "alpha/create_flag",
	} {
		if got := first(t, query, flags); got != want {
			t.Errorf("%q finds %s, want %s", query, got, want)
		}
	}
}

func TestNamedServerComesFirst(t *testing.T) {
	servers := map[string][]string{"alpha": {"postgres_database_query_sql"}, "postgres": {"query"}}
	if got := first(t, "run an sql query on the postgres database", servers); got != "postgres/query" {
		t.Errorf("got %s", got)
	}
}
