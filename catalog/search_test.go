package catalog

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
)

func found(v *View, query string, limit int) []string {
	var names []string
	matches, _ := v.Find(query, limit)
	for _, m := range matches {
		names = append(names, m.Tool.Name)
		for _, t := range m.Also {
			names = append(names, t.Name)
		}
	}
	return names
}

func TestFindPutsTheExactNameFirst(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, tools(
		"+", "plus", "the", "the the", "issue", "Text", "issue_issue_issue", "issue issue issue", "get", "get get get", "list_issue", "issue"))
	for query, want := range map[string]string{"issue": "s/issue", "s/issue": "s/issue", " GET ": "s/get", "s/+": "s/+", "the": "s/the", "s/list_issue": "s/list_issue"} {
		if got := found(v, query, 1); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: got %v, want %s", query, got, want)
		}
	}
}

func TestFindReadsNamesTextsAndArguments(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "gh", Overrides: map[string]schema.ToolOverride{"quiet": {Description: "Adds a zebra"}}}, {Name: "fs"}}, map[string]*Listing{
		"gh": {Tools: raws(
			`{"name":"createPullRequest","description":"Opens one","inputSchema":{}}`,
			`{"name":"quiet","description":"Says hippopotamus","inputSchema":{}}`,
			`{"name":"order","inputSchema":{"properties":{"flavour":{"type":"string","enum":["vanilla","mint"]},
				"nested":{"properties":{"giraffe":{"description":"The tall okapi"}}},
				"many":{"items":{"properties":{"walrus":{}}}}}}}`,
			`{"name":"title_only","title":"Pelican","inputSchema":{}}`,
		)},
		"fs": tools("read", "Reads from disk"),
	}).View()
	for query, want := range map[string]string{
		"pull requests":        "gh/createPullRequest",
		"zebras":               "gh/quiet",
		"which has mint?":      "gh/order",
		"okapi":                "gh/order",
		"giraffes":             "gh/order",
		"walrus":               "gh/order",
		"pelican":              "gh/title_only",
		"reading disks":        "fs/read",
		"something of fs":      "fs/read",
		"hippopotamus":         "", // overridden
		"":                     "",
		"?!":                   "",
		"\xff\xfe\u202e":       "",
		"nobody says platypus": "",
	} {
		got := append(found(v, query, 1), "")[0]
		if got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
	if got := found(v, "gh", 10); len(got) != 4 {
		t.Errorf("a server's name finds %v", got)
	}
	if got, _ := v.Find("reading", -1); len(got) != 0 {
		t.Errorf("limit -1 gives %v", got)
	}
}

// Concurrent searches do not affect each other.
func TestConcurrentSearches(t *testing.T) {
	t.Parallel()
	v := madeCatalog(300).View()
	queries := []string{"rename the dashboards of a project", "delete invoices", "issue", "nobody says platypus", "server-003"}
	var want [][]string
	for _, q := range queries {
		want = append(want, found(v, q, 10))
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				if k := (i + j) % len(queries); !slices.Equal(found(v, queries[k], 10), want[k]) {
					t.Errorf("%q has another answer during other searches", queries[k])
				}
			}
		})
	}
	all.Wait()
}

func TestFindIgnoresPolitePhrases(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, tools(
		"help_me", "Shows the manual",
		"film_search", "Lists films by their names and years, with directors and ratings",
		"a", "Sends a message to a channel of the workspace", "b", "Reads one file from disk", "c", "Counts rows of a table"))
	for _, query := range []string{
		"Hey, could you please help me? I would like to know something about films",
		"I was wondering whether someone could help me, I would like to try some films",
		"help me with films"} {
		equal(t, found(v, query, 1), []string{"s/film_search"})
	}
	// Such words count if there are no others.
	equal(t, found(v, "help me", 1), []string{"s/help_me"})
	equal(t, found(v, "could you help", 1), []string{"s/help_me"})
	equal(t, len(found(v, "could you help with a xylophone", 1)), 0)
}

func TestFindOrdersEqualsByName(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, tools("c", "same words", "a", "same words", "b", "same words"))
	equal(t, found(v, "words", 10), []string{"s/a", "s/b", "s/c"})
	equal(t, found(v, "words", 2), []string{"s/a", "s/b"})
}

// The words of a server's description find its tools.
func TestFindReadsDescriptions(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "memory", Description: "Remember facts about the user."}, {Name: "fs", Lazy: true, Description: "FS server"}}, map[string]*Listing{
		"memory": tools("create_entities", "Creates nodes in the graph", "read_graph", "Returns the graph"), "fs": tools("read_file", "Reads from disk"),
	}).View()
	equal(t, found(v, "remember what I like", 5), []string{"memory/create_entities", "memory/read_graph"})
	equal(t, found(v, "read what the user told", 1), []string{"memory/read_graph"})

	// A generated description has the words of the tools, which do not count twice.
	words := v.Texts().Proposal("fs", "")
	c := loadedWith([]Server{{Name: "fs", Lazy: true, Description: words}, {Name: "mail", Lazy: true, Description: "Read letters."}}, map[string]*Listing{
		"fs": tools("read_file", "Reads from disk"), "mail": tools("fetch", "Fetches one")})
	if about := c.View().part("fs").found.About(); words == "" || about != nil {
		t.Errorf("of %q count %v", words, about)
	}
	equal(t, found(c.View(), "letters", 1), []string{"mail/fetch"})
}

// A tool comes before tools whose texts mention what it does.
func TestFindPutsNamesBeforeMentions(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "base"}, {Name: "other"}}, map[string]*Listing{
		"base":  tools("upload_attachment", "Create record first: upload to a record", "create_record", "Writes one row into a table, with values for each of the fields that the table has in this base, and returns it with the time of its creation"),
		"other": tools("read", "Reads a file", "walk", "Walks a tree", "send", "Sends a message")}).View()
	equal(t, found(v, "create record", 1), []string{"base/create_record"})
}

// The name of a server that a query names counts for all of its tools, not for those that say it.
func TestFindIsNotLedByTheServersOwnName(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "acme"}, {Name: "other"}}, map[string]*Listing{
		"acme":  tools("acme_docs", "Acme documentation: how Acme works with Acme", "rollback", "Roll one back", "workers", "All workers of an account, with their routes, in the order in which they came"),
		"other": tools("read", "Reads a file", "walk", "Walks a tree")}).View()
	equal(t, found(v, "list acme workers", 1), []string{"acme/workers"})
}

// Verbs find nouns of their stem.
func TestFindKnowsFormsOfWords(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, tools("account_creation", "", "build_failures", "", "list_builds", "", "find_user", ""))
	equal(t, found(v, "why did it fail", 1), []string{"s/build_failures"})
	equal(t, found(v, "create one", 1), []string{"s/account_creation"})
}

// A server that one query of a call names comes first for the others.
func TestQueriesOfACallShareTheServer(t *testing.T) {
	t.Parallel()
	v := loadedWith([]Server{{Name: "acme"}, {Name: "other"}}, map[string]*Listing{
		"acme":  tools("open_ticket", "Opens a ticket", "add_note_to_it", "Adds a note to a ticket"),
		"other": tools("add_note", "Adds a note", "walk", "Walks a tree")}).View()
	for want, queries := range map[string][]string{"other/add_note": {"open a ticket", "add a note"}, "acme/add_note_to_it": {"open an acme ticket", "add a note"}} {
		text := v.Texts().Found(Search{Queries: queries, Limit: 1})
		if _, second, _ := strings.Cut(text, "For \"add a note\":\n"); !strings.HasPrefix(second, "- "+want+" ") {
			t.Errorf("%q: want %s, got %s", queries, want, text)
		}
	}
}

// A question for what is now finds the tool for what is current.
func TestFindKnowsThatQuestionsAreAboutNow(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "s"}, tools("current_time", "Get the current date and time.", "relative_time", "Get the relative time from now.",
		"convert_time", "Convert time between timezones.", "get_timestamp", "Get the timestamp for the time."))
	equal(t, found(v, "what time is it", 1), []string{"s/current_time"})
	if got := found(v, "time now", 2); !slices.Contains(got, "s/current_time") {
		t.Errorf("got %v", got)
	}
}
