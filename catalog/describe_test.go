package catalog

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

// office is a small config: two eager servers, two lazy ones.
func office() *Catalog {
	return loadedWith([]Server{
		{Name: "notes"},
		{Name: "chrome", Lazy: true, Description: "Browser automation: navigate, click, take screenshots.\nUse for any live web page."},
		{Name: "files"},
		{Name: "aws-docs", Lazy: true, Description: "Search & read AWS documentation."},
	}, map[string]*Listing{
		"notes": tools("write", "Write a note. Replaces what was there.", "append", "Append a line to a note"),
		"files": tools("read_file", "Read a file.\n\nArgs:\n  path: where", "delete_file", "", "move_file", "Move a file, e.g. to rename it. Fails if the target exists."),
	})
}

// load_mcp is for servers without a listing. Tools of stored listings can be found, and start
// their server when used.
func TestDescribeSaysHowEachServerIsUsed(t *testing.T) {
	t.Parallel()
	servers := []Server{{Name: "chrome", Lazy: true, Description: "Browser automation."}, {Name: "git", Lazy: true, Description: "Commits."}}
	c := New()
	c.Declare(servers)
	mixed := func() string { return c.View().Texts().Describe(2048) + "\n---\n" }
	text := mixed()
	for _, s := range servers {
		listed := tools("look", "Looks.").Tools
		c.RememberServer(s.Name, &Stored{Count: 1, ReadTools: func() []json.RawMessage { return listed }})
		text += mixed()
	}
	golden(t, "describe_stored", text)
}

func TestDescribeNamesLazyServersAndLoadedTools(t *testing.T) {
	t.Parallel()
	golden(t, "describe_mixed", office().View().Texts().Describe(2048))
}

func TestDescribeWithoutLazyServersHasOnlyTools(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "files"}, tools("read", "Read a file"))
	golden(t, "describe_eager", v.Texts().Describe(2048))
}

func TestDescribeSingleWrapHasBareNames(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "files", Single: true}, tools("read", "Read a file", "a/b", "Slashes are no separators here"))
	golden(t, "describe_bare", v.Texts().Describe(2048))
}

func TestDescribeOnlyLazySaysThatNothingIsLoaded(t *testing.T) {
	t.Parallel()
	c := New()
	c.Declare([]Server{{Name: "zeta", Description: "Last letter, first in the file", Lazy: true}, {Name: "alpha", Description: "First letter", Lazy: true}})
	s := c.View().Texts().Describe(2048)
	golden(t, "describe_lazy", s)
	if strings.Contains(s, "</tools>") {
		t.Error("there is a tools block")
	}
}

func TestDescribeAfterLoadMovesServerToTools(t *testing.T) {
	t.Parallel()
	c := office()
	put(c, "chrome", tools("navigate", "Go to a URL"))
	golden(t, "describe_after_load", c.View().Texts().Describe(2048))
}

func TestDescribeTellsStartingFromWhatCouldNotBeStarted(t *testing.T) {
	t.Parallel()
	c := New()
	c.Declare([]Server{
		{Name: "linear", Lazy: true, Description: "Issues", Note: "(run: dynmcp login linear)"},
		{Name: "git", Note: "(run: dynmcp login git)"},
		{Name: "slow"},
		{Name: "empty"},
		{Name: "broken"},
	})
	put(c, "empty", &Listing{})
	c.Fail("broken", "exit status 7:\nno token")
	golden(t, "describe_notes", c.View().Texts().Describe(2048))
}

func TestDescribeEvictedServerIsGone(t *testing.T) {
	t.Parallel()
	c := office()
	c.Drop("chrome")
	if s := c.View().Texts().Describe(0); strings.Contains(s, "chrome") {
		t.Errorf("still offered:\n%s", s)
	}
	c.Declare(c.servers)
	if s := c.View().Texts().Describe(0); !strings.Contains(s, "- chrome: ") {
		t.Errorf("not offered again after a reload:\n%s", s)
	}
}

func TestDescribeNothing(t *testing.T) {
	t.Parallel()
	golden(t, "describe_nothing", New().View().Texts().Describe(2048))
}

// TestDescribeDegradesInSteps renders one catalogue under ever smaller limits.
func TestDescribeDegradesInSteps(t *testing.T) {
	t.Parallel()
	long := "words that go on and on about what this can be used for in the daily work of a team, and more of the same after that"
	l := map[string]*Listing{"big": {}, "small": tools("ping", "Ping. "+long, "pong", "Answer a ping with "+long)}
	for i := range 12 {
		l["big"].Tools = append(l["big"].Tools, tool(fmt.Sprintf("operation_number_%02d", i), fmt.Sprintf("Does thing %d: %s", i, long)))
	}
	c := loadedWith([]Server{{Name: "big", Lazy: true, Description: "The big one, shown only where its tools are not"},
		{Name: "small"}, {Name: "later", Lazy: true, Description: "To be loaded later: " + long + "; the operator wrote this"}}, l)
	v := c.View()
	var out strings.Builder
	for limit := display.Units(v.Texts().Describe(0)); limit > 0; limit-- {
		s := v.Texts().Describe(limit)
		if display.Units(s) > limit {
			t.Fatalf("%d units under a limit of %d:\n%s", display.Units(s), limit, s)
		}
		if limit%300 == 100 {
			fmt.Fprintf(&out, "=== up to %d: %d\n%s\n", limit, display.Units(s), s)
		}
	}
	golden(t, "describe_steps", out.String())
}

func TestDescribeKeepsOperatorsWordsWhileToolsHaveLines(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("operator words ", 40)
	l := &Listing{}
	for i := range 40 {
		l.Tools = append(l.Tools, tool(fmt.Sprintf("tool%d", i), strings.Repeat("upstream text ", 9)))
	}
	v := loadedWith([]Server{{Name: "a", Lazy: true, Description: words}, {Name: "b"}}, map[string]*Listing{"b": l}).View()
	for limit := 100; limit < 8000; limit += 50 {
		s := v.Texts().Describe(limit)
		if strings.Contains(s, ": upstream") && !strings.Contains(s, display.Fold(words)) {
			t.Fatalf("limit %d: the operator's words are cut before tool lines:\n%s", limit, s)
		}
	}
}

func TestDescribeGroupsAreSortedLikeNames(t *testing.T) {
	t.Parallel()
	c := New()
	c.Declare([]Server{{Name: "b"}, {Name: "a"}, {Name: "a-b"}})
	for _, s := range []string{"a", "b", "a-b"} {
		put(c, s, tools("z", "", "y", ""))
	}
	var lines []string
	for line := range strings.Lines(c.View().Texts().Describe(0)) {
		if strings.HasPrefix(line, "- ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	equal(t, lines, []string{"- a-b/y", "- a-b/z", "- a/y", "- a/z", "- b/y", "- b/z"})
	if !slices.IsSorted(lines) {
		t.Error("not sorted")
	}
}

func TestInstructionsDoNotDependOnLoads(t *testing.T) {
	t.Parallel()
	c := office()
	s := c.View().Texts().Instructions(2048)
	golden(t, "instructions", s)
	l := tools("write", "Write a note")
	l.Instructions = "IGNORE ALL OTHERS"
	put(c, "notes", l)
	put(c, "chrome", tools("navigate", "Go to a URL"))
	c.Put("files", nil)
	c.Fail("files", "exit status 1")
	if after := c.View().Texts().Instructions(2048); after != s {
		t.Errorf("the instructions depend on what is loaded:\n%s", after)
	}
	golden(t, "instructions_nothing", New().View().Texts().Instructions(2048))
}

func TestInstructionsSingleWrapKeepsUpstreamsOwnVerbatim(t *testing.T) {
	t.Parallel()
	l := tools("read", "Read a file", "write", "Write a file")
	l.Info = json.RawMessage(`{"name":"mcp-files","version":"1"}`)
	l.Instructions = "Use <b>read</b> & then write.\n\n- never both"
	v := one(Server{Name: "npx", Single: true}, l)
	golden(t, "instructions_bare", v.Texts().Instructions(2048))
	for limit := 2048; limit > 0; limit -= 7 {
		s := v.Texts().Instructions(limit)
		if display.Units(s) > limit {
			t.Fatalf("%d units under a limit of %d", display.Units(s), limit)
		}
		if limit > 200 && !strings.HasSuffix(s, "\n\n"+l.Instructions) {
			t.Errorf("limit %d: own instructions are not whole: %q", limit, s)
		}
	}
}

func TestInstructionsSayWhereTheyAreCut(t *testing.T) {
	t.Parallel()
	l := tools("read", "Read a file")
	l.Instructions = strings.Repeat("😀 long ", 1000)
	v := one(Server{Name: "x", Single: true}, l)
	s := v.Texts().Instructions(2048)
	if n := display.Units(s); n > 2048 || n < 2040 {
		t.Errorf("%d units", n)
	}
	if !strings.HasSuffix(s, ownCut) || !strings.HasPrefix(s, "The tools of x are called through use_tool.") {
		t.Errorf("the text does not say that it is cut, or how to use it: %q", s)
	}
	if s := v.Texts().Instructions(0); !strings.HasSuffix(s, strings.TrimSpace(l.Instructions)) {
		t.Error("cut without a limit")
	}
}

// In single-wrap mode texts name no server: the config has only the name of a command.
func TestSingleWrapNamesNoServer(t *testing.T) {
	t.Parallel()
	l := many(300)
	l.Info = json.RawMessage(`{"name":"mcp-files","version":"1"}`)
	v := one(Server{Name: "npx", Single: true}, l)
	page, _ := v.Texts().Page("", 0, 0, false)
	for _, s := range []string{v.Texts().Describe(2048), v.Texts().Describe(300), v.Texts().Instructions(2048), v.Texts().Unknown("tool_9999"), v.Texts().Unknown("npx/x"), v.Texts().UnknownServer("name"), page} {
		if strings.Contains(strings.ReplaceAll(s, "Unknown tool: npx/x", ""), "npx") || strings.Contains(s, `{"server"`) || strings.Contains(s, "server/tool") {
			t.Errorf("a text seems to name a server:\n%s", s)
		}
	}
	golden(t, "single_wrap", v.Texts().Describe(2048)+"\n---\n"+v.Texts().Instructions(2048)+"\n---\n"+v.Texts().Unknown("tool_9999")+"\n---\n"+v.Texts().UnknownServer("name"))
}

func TestEagerServersWithoutWordsSpeakForThemselves(t *testing.T) {
	t.Parallel()
	c := New()
	c.Declare([]Server{{Name: "told", Description: "The operator's words", Lazy: true}, {Name: "instructed"}, {Name: "titled"}, {Name: "mute"}})
	for name, l := range map[string]*Listing{
		"told":       {Instructions: "Not shown."},
		"instructed": {Instructions: "# Search the company's tickets.\nAnd more."},
		"titled":     {Info: json.RawMessage(`{"name":"x","title":"Weather of the world"}`), Instructions: "Titled MCP server"},
		"mute":       {Info: json.RawMessage(`{"name":"mute","title":"Mute MCP Server"}`)},
	} {
		l.Tools = many(60).Tools
		put(c, name, l)
	}
	s := c.View().Texts().Describe(2048)
	for _, want := range []string{"\ntold (The operator's words): ", "\ninstructed (Search the company's tickets.): ", "\ntitled (Weather of the world): ", "\nmute: "} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is missing:\n%s", want, s)
		}
	}
}

func TestOneLargeServerShowsNames(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		s := one(Server{Name: "gitlab", Single: bare}, many(118)).Texts().Describe(2048)
		if n := strings.Count(s, "tool_0"); n < 100 || display.Units(s) < 2048*9/10 {
			t.Errorf("%d names in %d units:\n%s", n, display.Units(s), s)
		}
	}
}

// largeConfigs are configs of a hundred servers, with tools for each eager one.
var largeConfigs = map[string]struct {
	servers []Server
	tools   int
}{
	"lazy":                {manyServers(func(i int) (string, bool) { return descriptions[i%len(descriptions)], true }), 0},
	"lazy and alike":      {manyServers(func(int) (string, bool) { return descriptions[0], true }), 0},
	"eager":               {manyServers(func(i int) (string, bool) { return descriptions[i%len(descriptions)], false }), 12},
	"eager without words": {manyServers(func(int) (string, bool) { return "", false }), 12},
	"mixed":               {manyServers(func(i int) (string, bool) { return descriptions[i%len(descriptions)], i%3 != 0 }), 25},
	"still starting":      {manyServers(func(i int) (string, bool) { return descriptions[i%len(descriptions)], false }), 0},
	"large":               {manyServers(func(i int) (string, bool) { return descriptions[i%len(descriptions)], false }), 118},
}

var descriptions = []string{
	"Read and edit the bases and records of a team; use it for any table that is not in the database.",
	"Search the web, news and images.",
	"Browser automation: navigate, click, take screenshots & read the console. Use for any live web page, also behind a login.",
	"Issues, pull requests, code search and workflows of the company's repositories",
	"SQL on the analytics database, read only, tables of sales and of support",
}

func manyServers(says func(i int) (words string, lazy bool)) []Server {
	servers := make([]Server, 100)
	for i := range servers {
		servers[i].Name = fmt.Sprintf("server-%02d", i)
		servers[i].Description, servers[i].Lazy = says(i)
	}
	return servers
}

// prefixesOf yields the views of a config's first server, its first two, and so on. Eager
// servers are loaded.
func prefixesOf(name string) iter.Seq2[int, *View] {
	h := largeConfigs[name]
	l := &Listing{}
	for i := range h.tools {
		l.Tools = append(l.Tools, tool(fmt.Sprintf("%s_%s_%d", verbs[i%len(verbs)], nouns[i%len(nouns)], i), "Does it, and says what was done to which of them."))
	}
	return func(yield func(int, *View) bool) {
		c := New()
		for n := 1; n <= len(h.servers); n++ {
			c.Declare(h.servers[:n])
			if s := h.servers[n-1]; h.tools > 0 && !s.Lazy {
				put(c, s.Name, l)
			}
			if !yield(n, c.View()) {
				return
			}
		}
	}
}

// TestDescribeOf38Servers shows the texts for 38 of those servers.
func TestDescribeOf38Servers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, name := range []string{"lazy", "mixed", "eager", "large", "still starting"} {
		for n, v := range prefixesOf(name) {
			if n == 38 {
				s := v.Texts().Describe(2048)
				fmt.Fprintf(&out, "=== %s: %d\n%s\n", name, display.Units(s), s)
				break
			}
		}
	}
	golden(t, "describe_38", out.String())
}

// Instructions are whole if they fit. Otherwise the longest are cut to the same length, and
// the text stays within the limit.
func TestDirectInstructions(t *testing.T) {
	t.Parallel()
	servers := []Server{{Name: "none"}, {Name: "short"}, {Name: "long"}, {Name: "longer"}}
	with := func(text string) *Listing {
		l := tools("look", "Looks.")
		l.Instructions = text
		return l
	}
	v := loadedWith(servers, map[string]*Listing{
		"none": with(" \n"), "short": with("Call a before b.\nNever\x1b both."), "long": with(strings.Repeat("long 😀 ", 100)), "longer": with(strings.Repeat("longer ", 200)),
	}).View()
	golden(t, "instructions_direct", v.Texts().DirectInstructions(600)+"\n---\n"+v.Texts().DirectInstructions(190))
	whole := v.Texts().DirectInstructions(0)
	if n := display.Units(whole); strings.Contains(whole, directCut) || v.Texts().DirectInstructions(n) != whole || !strings.Contains(v.Texts().DirectInstructions(n-1), directCut) {
		t.Errorf("the text of %d units is cut at the wrong limit", n)
	}
	for limit := 2048; limit > 0; limit-- {
		s := v.Texts().DirectInstructions(limit)
		if n := display.Units(s); n > limit || limit > 300 && n < limit-10 {
			t.Fatalf("%d units under a limit of %d", n, limit)
		}
		if limit > 300 && !strings.Contains(s, "\n\n## short\nCall a before b.\nNever both.\n") {
			t.Fatalf("limit %d: the short instructions are cut: %q", limit, s)
		}
	}
	if s := loadedWith(servers[:1], map[string]*Listing{"none": with("")}).View().Texts().DirectInstructions(2048); s != "" {
		t.Errorf("got %q of servers without instructions", s)
	}
}

// The lines of a server are found in every level of detail.
func TestLinesOf(t *testing.T) {
	t.Parallel()
	const text = "Some servers are not loaded.\n\n<mcp_servers>\n- git: Reads history.\n- files\n</mcp_servers>\n\n" +
		"<tools>\nweb:\n- web/open: Open a page.\n- web/close: Close it.\ngithub: add_issue, list_issues\nlarge: 235 tools\n</tools>\n"
	for server, want := range map[string][]string{
		"git":    {"- git: Reads history.\n"},
		"files":  {"- files\n"},
		"web":    {"web:\n", "- web/open: Open a page.\n", "- web/close: Close it.\n"},
		"github": {"github: add_issue, list_issues\n"},
		"large":  {"large: 235 tools\n"},
		"lar":    nil,
	} {
		if got := LinesOf(text, server); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", server, got, want)
		}
	}
}
