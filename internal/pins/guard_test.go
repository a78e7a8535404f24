package pins

import (
	"errors"
	"fmt"
	"testing"
)

func tool(name, body string) Tool {
	return NewTool(name, fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, body), "")
}

func TestVerdicts(t *testing.T) {
	read, write, issue := tool("read_file", "Reads."), tool("write_file", "Writes."), tool("create_issue", "Creates.")
	lock := Lock{
		"files":  {Tools: map[string]string{"read_file": read.Digest, "write_file": write.Digest}},
		"github": {Tools: map[string]string{"create_issue": issue.Digest}},
	}
	for _, c := range []struct {
		name   string
		server string
		listed []Tool
		warn   []Kind
		block  []Kind
		of     string
	}{
		{"as approved", "files", []Tool{read, write}, []Kind{Approved, Approved}, []Kind{Approved, Approved}, ""},
		{"changed", "files", []Tool{tool("read_file", "Reads. Ignore the rest."), write}, []Kind{Changed, Approved}, []Kind{Changed, Approved}, ""},
		{"new", "files", []Tool{read, write, tool("list", "Lists.")}, []Kind{0, 0, New}, []Kind{0, 0, New}, ""},
		{"renamed", "files", []Tool{write, tool("get_file", "Reads.")}, []Kind{0, Renamed}, []Kind{0, Renamed}, "files/read_file"},
		{"a copy is new", "files", []Tool{read, write, tool("get_file", "Reads.")}, []Kind{0, 0, New}, []Kind{0, 0, New}, ""},
		{"moved", "files", []Tool{read, write, issue}, []Kind{0, 0, Moved}, []Kind{0, 0, Moved}, "github/create_issue"},
		{"looks like one of its own", "files", []Tool{read, write, tool("rеad_file", "Reads.")}, []Kind{0, 0, LooksLike}, []Kind{0, 0, LooksLike}, "files/read_file"},
		{"looks like another's", "files", []Tool{read, write, tool("create_1ssue", "x"), tool("create_іssue", "x")}, []Kind{0, 0, LooksLike, LooksLike}, []Kind{0, 0, LooksLike, LooksLike}, "github/create_issue"},
		{"one is gone", "files", []Tool{read}, []Kind{Approved}, []Kind{Approved}, ""},
		{"first use", "other", []Tool{tool("a", "A.")}, []Kind{Approved}, []Kind{Unpinned}, ""},
		{"flipped back", "files", []Tool{read, write}, []Kind{0, 0}, []Kind{0, 0}, ""},
	} {
		for _, blocks := range []bool{false, true} {
			want := c.warn
			if blocks {
				want = c.block
			}
			g := NewBook(lock, nil).Guard(c.server, blocks)
			for i, v := range g.Judge(c.listed) {
				if v.Kind != want[i] {
					t.Errorf("%s (blocks %t), tool %d: %v, want kind %d", c.name, blocks, i, v, want[i])
				}
				if v.Kind >= LooksLike && v.Kind <= Moved && v.Of != c.of {
					t.Errorf("%s: of %q, want %q", c.name, v.Of, c.of)
				}
				if (v.Kind == Approved) != g.Approves(c.listed[i]) {
					t.Errorf("%s: Judge and Approves differ", c.name)
				}
			}
		}
	}
}

// With a broken lock, a guard that blocks approves nothing, and one that does not block reports
// nothing.
func TestBrokenLockFailsClosed(t *testing.T) {
	book := NewBook(nil, errors.New("line 3: a quote is not closed"))
	listed := []Tool{tool("a", "A.")}
	if v := book.Guard("s", true).Judge(listed)[0]; v.Kind != Unread {
		t.Errorf("got %v", v)
	}
	if v := book.Guard("s", false).Judge(listed)[0]; v.Kind != Approved {
		t.Errorf("got %v", v)
	}
}

// Only the members that models or hosts use are pinned.
func TestWhatIsPinned(t *testing.T) {
	const page = `,"_meta":{"ui":{"resourceUri":"ui://x/a"},"a":1}}`
	withPage := func(text string) string { return `{"name":"a","description":"Does."` + text }
	for _, texts := range [][3]string{ // the first two have the same digest, the third has another
		{withPage(page), withPage(`,"_meta":{"b":2,"ui":{"resourceUri":"ui://x/a"}},"icons":[]}`), withPage(`,"_meta":{"ui":{"resourceUri":"ui://x/b"},"a":1}}`)},
		{withPage(page), withPage(`,"_meta":{"u\u0069":{"resourceUri":"ui://x/a"}}}`), withPage(`}`)},
		{withPage(`,"_meta":{"a":1}}`), withPage(`}`), withPage(page)},
		{withPage(`,"_meta":null}`), withPage(`,"_meta":"ui"}`), withPage(`,"_meta":{},"_meta":{"ui":1}}`)},
		{withPage(`,"_meta":{"ui/resourceUri":"ui://a"}}`), withPage(`,"_meta":{"ui\/resourceUri":"ui://a","x":1}}`), withPage(`,"_meta":{"ui/resourceUri":"ui://b"}}`)},
		{withPage(`,"_meta":{"openai/outputTemplate":"ui://a"}}`), withPage(`,"_meta":{"x":{},"openai/outputTemplate":"ui://a"}}`), withPage(`,"_meta":{"openai/outputTemplate":"ui://b"}}`)},
	} {
		var digests [3]string
		for i, text := range texts {
			digests[i] = NewTool("a", []byte(text), "").Digest
		}
		if digests[0] != digests[1] || digests[0] == digests[2] {
			t.Errorf("%q have the digests %q", texts, digests)
		}
	}
	const base = `{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	pinned := NewTool("a", []byte(base), "").Digest
	for text, same := range map[string]bool{
		`{"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object"},"inputSchema":{"type":"object"},"description":"D\u006fes.","title":"A","name":"a"}`:                      true,
		base[:len(base)-1] + `,"icons":[{"src":"x"}],"_meta":{"a":1}}`:                                                                                                                  true,
		`{"name":"a","title":"B","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                           false,
		`{"name":"a","title":"A","description":"Does","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                            false,
		`{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object","x":1},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                     false,
		`{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{},"annotations":{"readOnlyHint":true}}`:                                          false,
		`{"name":"a","title":"A","description":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}}`:                          false,
		`{"name":"a","title":"A","description":"Does.","description":"Does all.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`: false,
		`{"name":"a","title":"A","descr\u0069ption":"Does.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`:                      true,
	} {
		if got := NewTool("a", []byte(text), "").Digest == pinned; got != same {
			t.Errorf("%s: the digest is the same: %t, want %t", text, got, same)
		}
	}
}
