package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

// many lists n tools with long descriptions.
func many(n int) *Listing {
	l := &Listing{}
	for i := range n {
		l.Tools = append(l.Tools, tool(fmt.Sprintf("tool_%04d", i), fmt.Sprintf("Does thing %d %s", i, strings.Repeat("at length ", 20))))
	}
	return l
}

func TestPageOfEverything(t *testing.T) {
	c := office()
	note(c, "aws-docs", "(run: dynmcp login aws-docs)")
	p, ok := c.View().Texts().Page("", 0, 0, false)
	if !ok || p.Next != 0 {
		t.Errorf("got %v, next %d", ok, p.Next)
	}
	golden(t, "page_all", p.Text)
}

func TestPageOfOneServerHasItsInstructionsOnce(t *testing.T) {
	l := tools("a", "First", "b", "Second", "c", "Third")
	l.Instructions = "Call a before b.\u202e"
	v := one(Server{Name: "s"}, l)
	var out strings.Builder
	for offset := 0; ; {
		p, _ := v.Texts().Page("s", offset, 2, false)
		out.WriteString(p.Text + "\n---\n")
		if offset = p.Next; offset == 0 {
			break
		}
	}
	golden(t, "page_server", out.String())
}

func TestPageOfUnloadedServerSaysHowToLoad(t *testing.T) {
	p, ok := office().View().Texts().Page("chrome", 0, 0, false)
	if !ok {
		t.Fatal("not known")
	}
	golden(t, "page_unloaded", p.Text)
}

func TestCutInstructionsAreShownInFull(t *testing.T) {
	for _, bare := range []bool{false, true} {
		l := tools("a", "First")
		l.Instructions = strings.Repeat("long ", 1000) + "end"
		v := one(Server{Name: "s", Single: bare}, l)
		how := `[Cut: discover_tool {"server": "s", "full": true} shows all.]`
		if bare {
			how = `[Cut: discover_tool {"full": true} shows all.]`
		}
		short, _ := v.Texts().Page("s", 0, 0, false)
		whole, _ := v.Texts().Page("s", 0, 0, true)
		if !strings.Contains(short.Text, how) || strings.Contains(short.Text, "long end") || !strings.Contains(whole.Text, l.Instructions+"\n\n") {
			t.Errorf("short: %s\nwhole: %s", short.Text, whole.Text)
		}
	}
}

func TestPageOfUnknownServer(t *testing.T) {
	if _, ok := New().View().Texts().Page("x", 0, 0, false); ok {
		t.Error("known")
	}
}

func TestPagesCoverEverythingOnceAndStaySmall(t *testing.T) {
	servers := []Server{{Name: "s"}}
	for i := range 1299 {
		servers = append(servers, Server{Name: fmt.Sprintf("later-%d", i), Lazy: true, Description: strings.Repeat("words ", 30)})
	}
	v := loadedWith(servers, map[string]*Listing{"s": many(1300)}).View()
	for _, server := range []string{"s", ""} {
		for _, limit := range []int{0, 1, 7, 1 << 30} {
			seen := map[string]bool{}
			for offset := 0; ; {
				p, _ := v.Texts().Page(server, offset, limit, false)
				if len(p.Text) > pageBytes+500 {
					t.Fatalf("limit %d: a page of %d bytes", limit, len(p.Text))
				}
				for line := range strings.Lines(p.Text) {
					if name, ok := strings.CutPrefix(line, "- "); ok {
						seen[strings.Fields(name)[0]] = true
					}
				}
				if p.Next == 0 {
					break
				}
				if !strings.Contains(p.Text, fmt.Sprintf(`"offset": %d}`, p.Next)) {
					t.Fatalf("it is not said how to go on: %s", p.Text[len(p.Text)-100:])
				}
				offset = p.Next
			}
			if len(seen) != 1300 {
				t.Errorf("server %q, limit %d: %d entries seen, want 1300", server, limit, len(seen))
			}
		}
	}
	if p, _ := v.Texts().Page("s", 5000, 0, false); !strings.Contains(p.Text, "there are 1300") {
		t.Error(p.Text)
	}
}

func TestLoadedListsEverythingByName(t *testing.T) {
	l := tools("browser_navigate", "Go to a URL. Waits for it.", "click", "")
	l.Resources = raws(`{"uri":"page://current","name":"Current page","description":"What is\nshown"}`)
	l.Templates = raws(`{"uriTemplate":"page://{n}","name":"Page n"}`)
	l.Prompts = raws(`{"name":"debug","description":"Debug a page"}`)
	l.Instructions = "Navigate first."
	text := one(Server{Name: "chrome", Lazy: true}, l).Texts().Loaded("chrome")
	golden(t, "loaded", text)
	if !json.Valid([]byte(text)) {
		t.Fatal("not JSON")
	}
}

func TestLoadedOfNothing(t *testing.T) {
	text := one(Server{Name: "x"}, &Listing{}).Texts().Loaded("x")
	equal(t, text, `{"mcp_name":"x","tools":[],"resources":[],"resource_templates":[],"prompts":[]}`)
	v := office().View()
	for _, name := range []string{"chrome", "nobody"} {
		if text := v.Texts().Loaded(name); text != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestLoadedStaysUnder16KiB(t *testing.T) {
	big := many(60)
	for i := range 3000 {
		big.Resources = append(big.Resources, json.RawMessage(fmt.Sprintf(`{"uri":"x://%d","name":"resource %d","description":"long words"}`, i, i)))
	}
	for _, tt := range []struct {
		name                string
		l                   *Listing
		tools, lines, extra int // tools told, of those with a line, resources told
		more                string
	}{
		{"lines", many(60), 60, 60, 0, ""},
		{"names", many(300), 300, 0, 0, "left out to keep this short: descriptions of 300 tools."},
		{"count", many(2000), 430, 0, 0, "descriptions of 2000 tools, 15"},
		{"resources", big, 60, 0, 520, "descriptions of 3000 resources, descriptions of 60 tools, 2"},
	} {
		tt.l.Instructions = strings.Repeat("漢\"", 3000)
		v := one(Server{Name: "s"}, tt.l)
		text := v.Texts().Loaded("s")
		if len(text) > pageBytes {
			t.Errorf("%s: %d bytes", tt.name, len(text))
		}
		var got struct {
			Tools, Resources []map[string]string
			More             string
			Instructions     string
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if n := display.Units(got.Instructions); n > ownWords {
			t.Errorf("%s: instructions of %d units", tt.name, n)
		}
		lines := 0
		for _, tool := range got.Tools {
			if tool["description"] != "" {
				lines++
			}
		}
		if len(got.Tools) < tt.tools*9/10 || lines != tt.lines || len(got.Resources) < tt.extra*9/10 || (got.More != "") != (tt.more != "") || !strings.Contains(got.More, tt.more) {
			t.Errorf("%s: %d tools, %d lines, %d resources, more %q", tt.name, len(got.Tools), lines, len(got.Resources), got.More)
		}
	}
}

func TestUnknownToolNamesTheNearest(t *testing.T) {
	c := office()
	note(c, "aws-docs", "(run: dynmcp login aws-docs)")
	v := c.View()
	var out strings.Builder
	for _, name := range []string{"files/raed_file", "read_file", "notes/file_delete", "chrome/click", "nothing like it", "", "x\n</tools>\x1b[2J" + strings.Repeat("y", 500)} {
		out.WriteString(v.Texts().Unknown(name) + "\n---\n")
	}
	golden(t, "unknown", out.String())
}

func TestUnknownIsNeverEmptyAndBounded(t *testing.T) {
	golden(t, "unknown_nothing", New().View().Texts().Unknown("x"))
	servers := []Server{{Name: "s"}}
	for i := range 500 {
		servers = append(servers, Server{Name: fmt.Sprintf("lazy-%d", i), Lazy: true}, Server{Name: fmt.Sprintf("eager-%d", i)})
	}
	v := loadedWith(servers, map[string]*Listing{"s": many(1300)}).View()
	if s := v.Texts().Unknown("s/tool_9999"); len(s) > 256 || !strings.Contains(s, "Server s has 1300 tools") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
	if s := v.Texts().Unknown("nobody/knows"); len(s) > 2048 || !strings.Contains(s, "1300 tools in all") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
	if s := v.Texts().UnknownServer("lazy"); len(s) > 4096 {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}

func TestUnknownServerListsAlternatives(t *testing.T) {
	golden(t, "unknown_server", office().View().Texts().UnknownServer("chrom\ne")+"\n"+New().View().Texts().UnknownServer("x"))
}

func TestNearest(t *testing.T) {
	v := one(Server{Name: "gh"}, tools("create_issue", "", "list_issues", "", "create_pull_request", "", "get_me", "", "search_code", ""))
	for name, want := range map[string]string{
		"gh/creat_issue":         "gh/create_issue",
		"create_isuse":           "gh/create_issue",
		"issues_list":            "gh/list_issues",
		"hub/create_issue":       "gh/create_issue",
		"gh/createPullRequest":   "gh/create_pull_request",
		"GH/GET_ME":              "gh/get_me",
		"gh__search_code":        "gh/search_code",
		strings.Repeat("q", 1e6): "",
		"":                       "",
	} {
		got := ""
		if near := v.Nearest(name, 1); len(near) > 0 {
			got = near[0].Name
		}
		if got != want {
			t.Errorf("%.40q: got %q, want %q", name, got, want)
		}
	}
}
