package catalog

import (
	"encoding/json"
	"testing"
)

// A description is proposed of what a server says of itself, and of its tools' names
// where that is little.
func TestProposal(t *testing.T) {
	tools := []json.RawMessage{json.RawMessage(`{"name":"find_note","inputSchema":{"type":"object"}}`), json.RawMessage(`{"name":"read_note","inputSchema":{"type":"object"}}`)}
	for name, c := range map[string]struct {
		listing *Listing
		want    string
	}{
		"instructions": {&Listing{Tools: tools, Instructions: "Reads, writes and searches the notes that a team has written. Call find_note first.", Info: json.RawMessage(`{"name":"x","title":"Team notes"}`)},
			"Reads, writes and searches the notes that a team has written."},
		"title":   {&Listing{Tools: tools, Info: json.RawMessage(`{"name":"x","title":"Team notes"}`)}, "Team notes. Tools: find_note, read_note"},
		"tools":   {&Listing{Tools: tools, Info: json.RawMessage(`{"name":"x"}`)}, "Tools: find_note, read_note"},
		"nothing": {&Listing{Info: json.RawMessage(`{"name":"x"}`)}, ""},
	} {
		if got := one(Server{Name: "x"}, c.listing).Texts().Proposal("x"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := one(Server{Name: "x"}, &Listing{}).Texts().Proposal("y"); got != "" {
		t.Errorf("an unknown server is proposed %q", got)
	}
}
