package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/mcptest/viewtest"
	"github.com/dynmcp/dynmcp/schema"
)

// forgeTree is a tree with one server mounted twice, another once, and one that is off.
func forgeTree() *Tree {
	return newTree(&Node{Path: "/", Children: []*Node{
		{Path: "/repo", Summary: "Repositories", Children: []*Node{
			{Path: "/repo/read", Mount: &Mount{Server: "forge", Filter: []string{"get_*", "!get_secret_*"}, Aliases: map[string]string{"get_file_contents": "get_file", "gone": "here"},
				Overrides: map[string]schema.ToolOverride{"get_issue": {Summary: "One issue"}, "nothing": {Summary: "No"}}}},
			{Path: "/repo/all", Description: "Everything. All of it.", Mount: &Mount{Server: "forge", Aliases: map[string]string{"get_issue": "create"}}},
		}},
		{Path: "/off", Mount: &Mount{Server: "off", Note: "(off: TOKEN is not set)"}},
		{Path: "/later", Mount: &Mount{Server: "later"}},
	}})
}

func TestTreeAsText(t *testing.T) {
	forge := viewtest.Tools("get_file_contents", "Gets.", "get_issue", "Gets an issue.", "get_secret_key", "", "create", "Creates.")
	v := viewtest.View([]catalog.Server{{Name: "forge"}, {Name: "later", Lazy: true, Description: "Later"}}, map[string]*catalog.Listing{"forge": forge})
	tree := forgeTree()
	viewtest.Golden(t, "tree_dump", tree.Dump(v))
	conflicts, warnings := tree.Problems(v)
	viewtest.Golden(t, "tree_problems", strings.Join(append(conflicts, warnings...), "\n"))
	viewtest.Golden(t, "tree_intro", tree.Intro(v, 0)+"\n\n"+tree.Intro(v, 195))
	viewtest.Golden(t, "tree_unknown", tree.Unknown(v, "/off/x")+"\n\n"+tree.Unknown(v, "/repo/raed/get_file")+"\n\n"+tree.Unknown(v, "nowhere"))
	if diff := cmp.Diff([]string{"forge", "later"}, tree.Servers(v)); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	viewtest.Golden(t, "tree_derived", newTree(nil).Dump(v))
}

// An answer over 16 KB keeps every path.
func TestLongTreeListsKeepEveryPath(t *testing.T) {
	var pairs []string
	for i := range 400 {
		pairs = append(pairs, fmt.Sprintf("tool_%03d", i), "It has a description.")
	}
	v := viewtest.View([]catalog.Server{{Name: "big"}}, map[string]*catalog.Listing{"big": viewtest.Tools(pairs...)})
	tree := newTree(nil)
	text, note := tree.Children(v, tree.At(v, "/big").Node)
	if n := strings.Count(text, `"type":"tool"`); n != 400 || strings.Contains(text, "summary") || !strings.Contains(note, "400") {
		t.Errorf("got %d tools, note %q", n, note)
	}
}
