package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// many returns a listing of n tools with long descriptions.
func many(n int) *Listing {
	l := &Listing{}
	for i := range n {
		l.Tools = append(l.Tools, tool(fmt.Sprintf("tool_%04d", i), fmt.Sprintf("Does thing %d %s", i, strings.Repeat("at length ", 20))))
	}
	return l
}

// next returns the offset of the page after this one, 0 for the last page.
func next(t *testing.T, page string) (offset int) {
	t.Helper()
	if _, how, more := strings.Cut(page, `"offset": `); more {
		if _, err := fmt.Sscanf(how, "%d}", &offset); err != nil {
			t.Fatalf("the page does not say how to continue: %s", how)
		}
	}
	return offset
}

func TestPageOfEverything(t *testing.T) {
	t.Parallel()
	c := office()
	note(c, "aws-docs", "(run: dynmcp login aws-docs)")
	p, ok := c.View().Texts().Page("", 0, 0, false)
	if !ok || next(t, p) != 0 {
		t.Errorf("got %v, next %d", ok, next(t, p))
	}
	golden(t, "page_all", p)
}

func TestPageOfOneServerHasItsInstructionsOnce(t *testing.T) {
	t.Parallel()
	l := tools("a", "First", "b", "Second", "c", "Third")
	l.Instructions = "Call a before b.\u202e"
	v := one(Server{Name: "s"}, l)
	var out strings.Builder
	for offset := 0; ; {
		p, _ := v.Texts().Page("s", offset, 2, false)
		out.WriteString(p + "\n---\n")
		if offset = next(t, p); offset == 0 {
			break
		}
	}
	golden(t, "page_server", out.String())
}

func TestPageOfUnloadedServerSaysHowToLoad(t *testing.T) {
	t.Parallel()
	p, ok := office().View().Texts().Page("chrome", 0, 0, false)
	if !ok {
		t.Fatal("the server is unknown")
	}
	golden(t, "page_unloaded", p)
}

func TestCutInstructionsAreShownInFull(t *testing.T) {
	t.Parallel()
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
		if !strings.Contains(short, how) || strings.Contains(short, "long end") || !strings.Contains(whole, l.Instructions+"\n\n") {
			t.Errorf("short: %s\nwhole: %s", short, whole)
		}
	}
}

func TestPageOfUnknownServer(t *testing.T) {
	t.Parallel()
	if _, ok := New().View().Texts().Page("x", 0, 0, false); ok {
		t.Error("an unknown server has a page")
	}
}

func TestPagesCoverEverythingOnceAndStaySmall(t *testing.T) {
	t.Parallel()
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
				if len(p) > pageBytes+500 {
					t.Fatalf("limit %d: a page of %d bytes", limit, len(p))
				}
				for line := range strings.Lines(p) {
					if name, ok := strings.CutPrefix(line, "- "); ok {
						seen[strings.Fields(name)[0]] = true
					}
				}
				if offset = next(t, p); offset == 0 {
					break
				}
			}
			if len(seen) != 1300 {
				t.Errorf("server %q, limit %d: %d entries seen, want 1300", server, limit, len(seen))
			}
		}
	}
	if p, _ := v.Texts().Page("s", 5000, 0, false); !strings.Contains(p, "there are 1300") {
		t.Error(p)
	}
}

func TestLoadedListsEverythingByName(t *testing.T) {
	t.Parallel()
	l := tools("browser_navigate", "Go to a URL. Waits for it.", "click", "")
	l.Resources = raws(`{"uri":"page://current","name":"Current page","description":"What is\nshown"}`)
	l.Templates = raws(`{"uriTemplate":"page://{n}","name":"Page n"}`)
	l.Prompts = raws(`{"name":"debug","description":"Debug a page"}`)
	l.Instructions = "Navigate first."
	text := one(Server{Name: "chrome", Lazy: true}, l).Texts().Loaded("chrome")
	golden(t, "loaded", text)
}

func TestLoadedOfNothing(t *testing.T) {
	t.Parallel()
	text := one(Server{Name: "x"}, &Listing{}).Texts().Loaded("x")
	equal(t, text, "x (0 tools)\nNo tools.")
	v := office().View()
	for _, name := range []string{"chrome", "nobody"} {
		if text := v.Texts().Loaded(name); text != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestLoadedStaysSmall(t *testing.T) {
	t.Parallel()
	l := many(300)
	for i := range 3000 {
		l.Resources = append(l.Resources, json.RawMessage(fmt.Sprintf(`{"uri":"x://%d","name":"resource %d","description":"long words"}`, i, i)))
	}
	l.Instructions = strings.Repeat("漢\"", 3000)
	text := one(Server{Name: "s"}, l).Texts().Loaded("s")
	if len(text) > pageBytes+3*namedBytes {
		t.Errorf("%d bytes", len(text))
	}
	for _, want := range []string{"- s/tool_0000: ", `of 300. Go on with discover_tool {"server": "s", "offset": `, "\n3000 resources:\n- x://0 (resource 0): long words\n", "\nand 29"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
}

func TestUnknownToolNamesTheNearest(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	golden(t, "unknown_server", office().View().Texts().UnknownServer("chrom\ne")+"\n"+New().View().Texts().UnknownServer("x"))
}

func TestNearest(t *testing.T) {
	t.Parallel()
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
