package catalog

import (
	"fmt"
	"sync"
	"testing"
)

func TestPutIndexesOnlyItsServer(t *testing.T) {
	t.Parallel()
	c := office()
	before := c.View()
	put(c, "notes", tools("write", "Write another note"))
	after := c.View()
	if before.server["files"] != after.server["files"] || before.server["chrome"] != after.server["chrome"] {
		t.Error("the view of another server was built again")
	}
	if before.server["notes"] == after.server["notes"] {
		t.Error("the view of the server was not built again")
	}
	equal(t, exposed(before), []string{"files/delete_file", "files/move_file", "files/read_file", "notes/append", "notes/write"})
	equal(t, exposed(after), []string{"files/delete_file", "files/move_file", "files/read_file", "notes/write"})
}

// Index does the slow work for a large listing, so that locks around Put are held briefly.
func TestPutBuildsNothing(t *testing.T) {
	t.Parallel()
	c := office()
	x := c.Index("notes", tools("write", "Write another note"))
	if !c.Put("notes", x) || c.View().server["notes"] != x.view {
		t.Error("what Index built was built again")
	}
}

// Put uses a declaration that changed after Index.
func TestPutUsesTheLastDeclaration(t *testing.T) {
	t.Parallel()
	c := office()
	x := c.Index("notes", tools("write", "Write another note", "read", ""))
	c.Declare([]Server{{Name: "notes", Filter: []string{"r*"}}})
	c.Put("notes", x)
	equal(t, exposed(c.View()), []string{"notes/read"})
}

func TestDeclareKeepsListingsOfWhatStays(t *testing.T) {
	t.Parallel()
	c := office()
	kept := c.View().server["files"].index
	c.Declare([]Server{{Name: "new"}, {Name: "files", Filter: []string{"read*"}}, {Name: "new", Description: "twice"}})
	v := c.View()
	equal(t, exposed(v), []string{"files/read_file"})
	if v.server["files"].index != kept {
		t.Error("the listing was read again")
	}
	c.Declare([]Server{{Name: "notes"}, {Name: "files"}})
	if info, _ := c.View().Server("notes"); info.Loaded {
		t.Error("a listing outlived its declaration")
	}
	if len(c.View().Tools()) != 3 {
		t.Error("the filter outlived its declaration")
	}
}

func TestPutOfUndeclaredServerChangesNothing(t *testing.T) {
	t.Parallel()
	c := office()
	before := c.View()
	if put(c, "stranger", tools("x", "")) {
		t.Error("Put accepts an undeclared server")
	}
	c.Drop("stranger")
	if c.View() != before {
		t.Error("the view changed")
	}
}

func TestDropEvictsUntilPutOrDeclared(t *testing.T) {
	t.Parallel()
	c := office()
	c.Drop("files")
	if _, ok := c.View().Server("files"); ok {
		t.Error("a dropped server is offered")
	}
	if _, ok := c.View().Tool("files/read_file"); ok {
		t.Error("a tool of a dropped server is found")
	}
	put(c, "files", tools("read_file", ""))
	if _, ok := c.View().Tool("files/read_file"); !ok {
		t.Error("the server is not offered again after Put")
	}
	c.Put("files", nil)
	if info, ok := c.View().Server("files"); !ok || info.Loaded {
		t.Errorf("got %+v, %v; want offered without a listing", info, ok)
	}
}

func TestServersKeepConfigOrder(t *testing.T) {
	t.Parallel()
	c := office()
	l := tools("a", "")
	l.Instructions, l.Info, l.Capabilities = "do", raws(`{"name":"up"}`)[0], raws(`{"tools":{}}`)[0]
	l.Prompts, l.Resources = raws(`{"name":"p"}`), raws(`{"uri":"u:1","name":"1"}`, `{"uri":"u:2","name":"2"}`)
	put(c, "chrome", l)
	var names []string
	for _, s := range c.View().Servers() {
		names = append(names, s.Name)
	}
	equal(t, names, []string{"notes", "chrome", "files", "aws-docs"})
	got, _ := c.View().Server("chrome")
	equal(t, got, ServerInfo{
		Name: "chrome", Called: "chrome", Description: got.Description, Intro: got.Intro, Lazy: true, Loaded: true,
		Tools: 1, Instructions: "do", Info: l.Info, Capabilities: l.Capabilities,
	})
}

func TestSameCatalogueSameBytes(t *testing.T) {
	t.Parallel()
	a, b := office().View(), office().View()
	for _, limit := range []int{0, 2048, 600, 300, 100} {
		equal(t, a.Texts().Describe(limit), b.Texts().Describe(limit))
		equal(t, a.Texts().Describe(limit), a.Texts().Describe(limit))
	}
	equal(t, a.Texts().Unknown("x"), b.Texts().Unknown("x"))
	equal(t, a.Texts().Found(Search{Queries: []string{"file"}}), b.Texts().Found(Search{Queries: []string{"file"}}))
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c := office()
	servers := c.servers
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 50 {
				switch (i + j) % 4 {
				case 0:
					put(c, "chrome", tools(fmt.Sprint("t", j), "Text"))
				case 1:
					c.Drop("chrome")
				case 2:
					c.Declare(servers)
				default:
					v := c.View()
					v.Texts().Describe(2048)
					v.Find("text", 3)
					for _, tool := range v.Tools() {
						tool.Definition()
					}
				}
			}
		})
	}
	wg.Wait()
}
