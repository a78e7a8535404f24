package catalog

import (
	"encoding/json"
	"testing"
)

// A proposal is made from the topics of the tools and the texts of the server and its
// package.
func TestProposal(t *testing.T) {
	t.Parallel()
	tools := []json.RawMessage{json.RawMessage(`{"name":"find_note","inputSchema":{"type":"object"}}`), json.RawMessage(`{"name":"read_note","inputSchema":{"type":"object"}}`)}
	many := append(tools, json.RawMessage(`{"name":"notes_list_tags","inputSchema":{"type":"object"}}`), json.RawMessage(`{"name":"create_note","inputSchema":{"type":"object"}}`))
	for name, c := range map[string]struct {
		listing  *Listing
		packaged string
		want     string
	}{
		"instructions": {&Listing{Tools: tools, Instructions: "Reads, writes and searches the notes that a team has written. Call find_note first.", Info: json.RawMessage(`{"name":"x","title":"Team notes"}`)}, "",
			"Reads, writes and searches the notes that a team has written."},
		"title":   {&Listing{Tools: tools, Info: json.RawMessage(`{"name":"x","title":"Team notes"}`)}, "", "Team notes. Note: find and read"},
		"package": {&Listing{Tools: tools, Info: json.RawMessage(`{"name":"x"}`)}, "MCP server for the notes of a team", "The notes of a team. Note: find and read"},
		"tools":   {&Listing{Tools: tools, Info: json.RawMessage(`{"name":"x"}`)}, "", "Note: find and read"},
		"many":    {&Listing{Tools: many, Instructions: "Use this server to keep the minutes of a team."}, "", "Notes, tags: create, find and list. Keep the minutes of a team."},
		"nothing": {&Listing{Info: json.RawMessage(`{"name":"x"}`)}, "", ""},
	} {
		if got := one(Server{Name: "x"}, c.listing).Texts().Proposal("x", c.packaged); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := one(Server{Name: "x"}, &Listing{}).Texts().Proposal("y", ""); got != "" {
		t.Errorf("an unknown server is proposed %q", got)
	}
}

// A lazy server without a description is described by its stored tools. A server that is
// shown with its tools is not.
func TestStoredToolsDescribe(t *testing.T) {
	t.Parallel()
	stored := map[string]*Stored{}
	for _, name := range []string{"lazy", "eager", "told", "named"} {
		stored[name] = &Stored{Count: 2, ReadTools: func() []json.RawMessage { return []json.RawMessage{tool("find_note", ""), tool("read_note", "")} }}
	}
	c := New()
	c.Declare([]Server{{Name: "lazy", Lazy: true}, {Name: "eager"}, {Name: "told", Lazy: true, Description: "Keeps notes."}, {Name: "named", Lazy: true, Description: "Named MCP server."}})
	c.Remember(stored)
	for name, want := range map[string]string{"lazy": "Note: find and read", "eager": "", "told": "Keeps notes.", "named": "Note: find and read"} {
		if info, _ := c.View().Server(name); info.Intro != want {
			t.Errorf("%s: %q, want %q", name, info.Intro, want)
		}
	}
}
