package catalog

import (
	"encoding/json"
	"slices"
	"testing"
)

func exposedTo(v *View) (all []string) {
	for _, t := range v.Tools() {
		all = append(all, t.Name)
	}
	return all
}

func TestOwnListings(t *testing.T) {
	c := New()
	declared := []Server{{Name: "all"}, {Name: "mine", Personal: true}, {Name: "late", Personal: true, Lazy: true, Description: "Notes."}}
	c.Declare(declared)
	list := func(server, principal string, named ...string) {
		l := &Listing{}
		for _, name := range named {
			l.Tools = append(l.Tools, json.RawMessage(`{"name":"`+name+`","inputSchema":{"type":"object"}}`))
		}
		if !c.PutFor(principal, server, c.IndexFor(principal, server, l)) {
			t.Fatalf("what %s lists to %q is refused", server, principal)
		}
	}
	is := func(principal string, want ...string) {
		t.Helper()
		if got := exposedTo(c.ViewFor(principal)); !slices.Equal(got, want) {
			t.Errorf("%q has %v, want %v", principal, got, want)
		}
	}
	list("all", "", "x")
	list("mine", "", "operators")
	list("mine", "ann", "a")
	list("mine", "dan", "a")
	list("mine", "bob", "b")
	list("late", "bob", "l")
	is("", "all/x", "mine/operators")
	is("ann", "all/x", "mine/a")
	is("bob", "all/x", "late/l", "mine/b")
	is("eve", "all/x")

	views := func(principal string) *Views { return c.Views().With(c.Own(principal)) }
	if views("ann") != views("dan") {
		t.Error("equal listings are shown twice")
	}
	if views("ann") == views("bob") || views("eve") == views("ann") || views("") != c.Views() {
		t.Error("different listings are shown as one")
	}
	if x, y := c.Own("ann").of["mine"], c.Own("dan").of["mine"]; x != y {
		t.Error("equal listings are kept twice")
	}
	if got := exposedTo(c.Unloaded("", c.Own("bob"))[NoTasks]); !slices.Equal(got, []string{"all/x", "mine/b"}) {
		t.Errorf("before lazy servers were loaded, bob has %v", got)
	}
	if got := exposedTo(c.Single("mine").With(c.Own("bob"))[NoTasks]); !slices.Equal(got, []string{"b"}) {
		t.Errorf("of one server, bob has %v", got)
	}

	c.Declare(declared) // again
	is("ann", "all/x", "mine/a")
	c.Put("mine", nil)
	is("ann", "all/x")
	is("bob", "all/x", "late/l")
	list("mine", "ann", "a")
	c.PutFor("ann", "mine", nil)
	is("ann", "all/x")

	list("mine", "ann", "a")
	declared[1].Personal = false
	c.Declare(declared)
	is("ann", "all/x")
	list("mine", "", "shared")
	is("bob", "all/x", "late/l", "mine/shared")
	declared[1].Personal = true
	c.Declare(declared) // its login may be that of the operator
	is("bob", "all/x", "late/l")
	is("", "all/x")
}
