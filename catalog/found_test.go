package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/tokens"
)

func TestFoundShowsTheFirstAndNamesServersToLoad(t *testing.T) {
	t.Parallel()
	v := office().View()
	golden(t, "found", strings.Join([]string{
		v.Texts().Found(Search{Queries: []string{"read a file"}, Limit: 2}), v.Texts().Found(Search{Queries: []string{"take a screenshot"}}), v.Texts().Found(Search{Queries: []string{"platypus"}}),
		v.Texts().Found(Search{Queries: []string{"note"}, Server: "notes"}), v.Texts().Found(Search{Queries: []string{"screenshot"}, Server: "notes"}),
		New().View().Texts().Found(Search{Queries: []string{"</x>"}}),
	}, "\n---\n"))
}

// issues returns a view of servers that have tools of the same names.
func issues(t *testing.T, names ...string) *View {
	t.Helper()
	var servers []Server
	listings := map[string]*Listing{}
	for i, name := range names {
		servers = append(servers, Server{Name: name})
		listings[name] = tools("create_issue", "Create an issue"+strings.Repeat(" or so", i), "get_me", "Who I am")
	}
	return loadedWith(servers, listings).View()
}

func TestToolsOfOneNameAreOneResult(t *testing.T) {
	t.Parallel()
	v := issues(t, "github", "gitlab", "jira", "linear", "gitea", "forgejo", "bitbucket")
	found, more := v.Find("create an issue", 1)
	if len(found) != 1 || found[0].Tool.Name != "github/create_issue" || len(found[0].Also) != 6 || more != 0 {
		t.Errorf("got %+v, and %d more", found, more)
	}
	text := v.Texts().Found(Search{Queries: []string{"create an issue"}})
	want := "- github/create_issue (below) (also gitlab/create_issue, jira/create_issue, linear/create_issue, and 3 more)\n"
	if !strings.HasPrefix(text, want) {
		t.Errorf("got %s\nwant it to begin with %s", text, want)
	}
	// The tool of a server in the query comes first.
	if found, _ := v.Find("create a jira issue", 1); found[0].Tool.Name != "jira/create_issue" {
		t.Errorf("got %s", found[0].Tool.Name)
	}
}

func TestVariantsComeAfterOtherTools(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, tools("send_mail", "Send a mail", "send_mail_2", "Send a mail", "send_mail_3", "Send a mail", "send_letter", "Send a letter that is a mail"))
	equal(t, found(v, "send mail", 4), []string{"s/send_mail", "s/send_mail_2", "s/send_letter", "s/send_mail_3"})
}

func TestFoundGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, many(25))
	seen := map[string]bool{}
	for page, offset := range []int{0, 5, 15} {
		text := v.Texts().Found(Search{Queries: []string{"thing"}, Offset: offset})
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "- "); ok {
				seen[strings.Trim(strings.Fields(name)[0], ":")] = true
			}
		}
		next := fmt.Sprintf(`more match: "offset": %d goes on.`, []int{5, 15, 25}[page])
		if strings.Contains(text, next) != (page < 2) {
			t.Errorf("page %d: %s", page, text)
		}
		if defines := strings.Contains(text, "Input Schema:"); defines != (page == 0) {
			t.Errorf("page %d: a definition: %v", page, defines)
		}
	}
	if len(seen) != 25 {
		t.Errorf("%d tools on three pages", len(seen))
	}
	if text := v.Texts().Found(Search{Queries: []string{"thing"}, Offset: 1 << 40}); text != "Nothing from 1099511627776 on." {
		t.Error(text)
	}
}

// Several queries have one answer: no tool is in it twice, and all definitions together stay
// within the limit for one query.
func TestSeveralQueriesAreOneAnswer(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "gh"}, {Name: "fs"}}, map[string]*Listing{
		"gh": tools("create_issue", "Create an issue", "list_issues", "List the issues of a repository", "delete_issue", "Delete an issue"),
		"fs": tools("read_file", "Read a file", "write_file", "Write a file"),
	}).View()
	var shown []string
	queries := []string{"create an issue", "read a file", "list issues", "create an issue", "platypus"}
	golden(t, "found_several", v.Texts().Found(Search{Queries: queries, Shown: func(t *Tool) { shown = append(shown, t.Name) }}))
	equal(t, shown, []string{"gh/create_issue", "fs/read_file", "gh/list_issues"})

	real, all := realCatalog(t).View(), []string(nil)
	for _, task := range thirtyTasks(t)[:10] {
		all = append(all, task.steps[0].query)
	}
	text := real.Texts().Found(Search{Queries: all})
	if n := tokens.Count(text); n > 4000 {
		t.Errorf("%d tokens for %d queries", n, len(all))
	}
	for _, tool := range real.Tools() {
		if n := strings.Count(text, "- "+tool.Name+":"); n > 1 || strings.Count(text, "\nName: "+tool.Name+"\n") > 1 {
			t.Errorf("%s appears %d times", tool.Name, n)
		}
	}
}

// TestFoundStaysSmall has definitions that are too large for an answer, also in a script that
// takes a token for each character.
func TestFoundStaysSmall(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"word ", "言葉です"} {
		l := &Listing{}
		for i := range 30 {
			l.Tools = append(l.Tools, tool(fmt.Sprintf("tool_%02d", i), "find "+strings.Repeat(word, 2000)))
		}
		if n := tokens.Count(one(Server{Name: "s"}, l).Texts().Found(Search{Queries: []string{"find"}})); n > 2000 {
			t.Errorf("%d tokens of %q", n, word)
		}
	}
	l := &Listing{Tools: raws(`{"name":"huge","inputSchema":{"type":"object","properties":{"` + strings.Repeat("long", 2000) + `":{}}}}`)}
	text := one(Server{Name: "s"}, l).Texts().Found(Search{Queries: []string{"huge"}})
	if !strings.Contains(text, `left out, about 5343 tokens: discover_tool {"tool_name": "s/huge"} shows it.`) {
		t.Error(text)
	}
}

func TestServersToLoadAreRanked(t *testing.T) {
	t.Parallel()
	servers := []Server{
		{Name: "mobile", Lazy: true, Description: "Drive phones. Take a picture of one, use it for apps that have no web page, or a screen of any size at all."},
		{Name: "exa", Lazy: true, Description: "Search the web."},
		{Name: "playwright", Lazy: true, Description: "Browser: open a page, take screenshots."},
	}
	for i := range 20 {
		servers = append(servers, Server{Name: fmt.Sprintf("other-%d", i), Lazy: true, Description: "Something else."})
	}
	c := New()
	c.Declare(servers)
	text := c.View().Texts().Found(Search{Queries: []string{"take a screenshot of a web page"}})
	var named []string
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "- "), ":"); ok && strings.HasPrefix(line, "- ") {
			named = append(named, name)
		}
	}
	if !slices.Equal(named, []string{"playwright", "mobile", "exa"}) || !strings.HasSuffix(text, "\nNo tools known: 20 more servers; discover_tool with no argument lists them.") {
		t.Errorf("got %s", text)
	}
	text = c.View().Texts().Found(Search{Queries: []string{"platypus"}})
	if strings.Contains(text, "\n- ") || !strings.HasSuffix(text, "\nNo tools known: 23 servers; discover_tool with no argument lists them.") {
		t.Errorf("got %s", text)
	}
}

func TestFoundInAServerThatWasLoaded(t *testing.T) {
	t.Parallel()
	l := many(300)
	l.Prompts = raws(`{"name":"debug"}`)
	l.Instructions = "Be kind to it."
	v := loadedWith([]Server{{Name: "s", Lazy: true}, {Name: "x"}}, map[string]*Listing{"s": l, "x": tools("do_thing_7", "Does thing 7")}).View()
	text := v.Texts().FoundIn("s", []string{"thing 7"}, nil)
	for _, want := range []string{"s is loaded, with 300 tools, 1 prompt.\n- s/tool_0007 (below)\n", "\nName: s/tool_0007\n", "\n\nInstructions of this server:\nBe kind to it."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
	if strings.Contains(text, "x/do_thing_7") {
		t.Errorf("a tool of another server is found: %s", text)
	}
	if text := v.Texts().FoundIn("nobody", []string{"thing"}, nil); text != "" {
		t.Error(text)
	}
}

// Eager servers without a listing are suggested like lazy ones, and named once.
func TestEagerServersWithoutListingAreRanked(t *testing.T) {
	t.Parallel()
	c := New()
	c.Declare([]Server{
		{Name: "browser-slow"},
		{Name: "browser-down"},
		{Name: "other"},
		{Name: "browser-off", Note: "(off: TOKEN is not set)"},
		{Name: "web", Description: "Drives a browser.", Lazy: true},
	})
	c.Fail("browser-down", "exit status 1")
	c.Fail("browser-off", "it is off")
	equal(t, c.View().Texts().Found(Search{Queries: []string{"open the browser"}}), `No tool matches "open the browser". discover_tool with no argument lists all.

Not there yet, may have more; discover_tool {"server": "name"} waits for one:
- browser-slow (still starting, its tools can be called)
- browser-down (could not be started: exit status 1)
- browser-off (off: TOKEN is not set)

No tools known; call load_mcp with the name:
- web: Drives a browser.
Servers still starting: other.`)
}

// A search in a server of few tools that matches nothing lists them, and words that no tool has
// are named.
func TestFoundSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "docs"}, {Name: "big"}}, map[string]*Listing{"docs": tools("search", "Finds a page", "rate", "Rates a page"), "big": many(13)}).View()
	for _, c := range []struct{ query, server, want string }{
		{"rotate pictures", "docs", "No tool of docs matches \"rotate pictures\". It has:\n- docs/rate: Rates a page\n- docs/search: Finds a page"},
		{"rotate pictures", "big", "No tool of big matches \"rotate pictures\". discover_tool {\"server\": \"big\"} lists all it has."},
		{"rotate pictures", "", "No tool matches \"rotate pictures\". discover_tool with no argument lists all."},
	} {
		equal(t, v.Texts().Found(Search{Queries: []string{c.query}, Server: c.server}), c.want)
	}
	text := v.Texts().Found(Search{Queries: []string{"please rate Kubernetes pages, kubectl"}})
	if !strings.Contains(text, "\nNo tool has: Kubernetes, kubectl\n") {
		t.Error(text)
	}
}
