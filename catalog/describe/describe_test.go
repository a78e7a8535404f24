package describe

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

func named(names ...string) (tools []Tool) {
	for _, name := range names {
		tools = append(tools, Tool{Name: name})
	}
	return tools
}

// TestProposalsFindTheServer of package catalog measures how well descriptions tell servers
// apart.
func TestText(t *testing.T) {
	for _, c := range []struct {
		name string
		of   Subject
		want string
	}{
		{"nothing is known", Subject{Name: "x"}, ""},
		{"topics, then verbs", Subject{Name: "forge", Tools: named("create_issue", "list_issues", "update_issue", "create_pull_request", "list_pull_requests", "search_code")},
			"Issues, code, pull requests: create, list and search"},
		{"the server's name says nothing", Subject{Name: "slack", Tools: named("slack_list_channels", "slack_post_message", "slack_get_users", "slack_add_reaction")},
			"Message, channels, reaction, users: add, get and list"},
		{"a word that all names have", Subject{Name: "p", Tools: named("browser_click", "browser_navigate", "browser_type_text", "browser_close", "browser_hover")},
			"Browser, click, hover, navigate, text: close"},
		{"names in other styles", Subject{Name: "n", Tools: named("API-get-users", "retrievePage", "updatePage", "createPageComment")},
			"Page, comment, users: create, get and retrieve"},
		{"few tools speak for themselves", Subject{Name: "db", Tools: []Tool{{"query", "Run a read-only SQL query. Takes one statement."}}},
			"Run a read-only SQL query."},
		{"what is got stands first", Subject{Name: "sky", Tools: []Tool{{"now", "Get the current weather of a city."}, {"search", "Search for stations."}}},
			"Weather of a city. Search for stations."},
		{"what errors are", Subject{Name: "n", Tools: []Tool{{"get_page", "Get a page\nError responses: 400"}, {"list_users", "List users with error responses"},
			{"get_block", "Retrieve error responses"}, {"get_comment", "Retrieve errors"}, {"what_to_eat", ""}}}, "Page, eat, block, users, comment: get and list"},
		{"its own words", Subject{Name: "brave", Says: []string{"# Usage\n", "Use this server to search the Web via the Brave Search API. Then more."}, Tools: named("web_search", "news_search", "image_search", "video_search")},
			"Web, news, image, video: search. Search the Web via the Brave Search API."},
		{"empty praise", Subject{Name: "acme", Says: []string{"The Acme MCP server provides tools to interact with Acme.", "Acme MCP Server"}, Tools: named("a_get", "b_get", "c_get", "parcel_track")},
			"Parcel track: get"},
		{"words of descriptions", Subject{Name: "m", Tools: []Tool{{"geocode", "Convert an address into coordinates"}, {"reverse", "Convert coordinates into an address"}, {"elevation", "Get the elevation"}, {"route", "Plan a route"}}},
			"Route, elevation, geocode, reverse, address, coordinates"},
		{"other scripts", Subject{Name: "n", Tools: named("查询天气", "查询新闻", "查询股票", "翻译文本")}, "查询天气, 查询新闻, 查询股票, 翻译文本"},
	} {
		if got := Text(c.of); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A second part that says nothing more, or is in another language, is left out. A long one ends with a part.
func TestTextEndsWell(t *testing.T) {
	for want, of := range map[string]Subject{
		"Convert time between timezones.":                            {Name: "time", Tools: []Tool{{"convert_time", "Convert time between timezones."}, {"get_time", "Get the time"}}},
		"使用必应搜索指定的关键词。根据ID获取网页的内容。":                                  {Name: "bing", Tools: []Tool{{"search", "使用必应搜索指定的关键词。"}, {"fetch_webpage", "根据ID获取网页的内容。"}}},
		"Check if a version exists. Latest version of a dependency.": {Name: "m", Tools: []Tool{{"check", "Check if a version exists."}, {"latest", "Get the latest version of a dependency."}}},
		"Components, docs, examples: get":                            {Name: "ant", Tools: []Tool{{"get_docs", "Get 适用场景 of components"}, {"get_examples", "Get 适用场景"}, {"get_component", ""}, {"get_components", ""}}},
		"获取角色详细信息。获取角色档案信息。":                                         {Name: "w", Tools: []Tool{{"get_character", "获取角色详细信息。"}, {"get_profile", "获取角色档案信息。"}, {"get_artifact", "Artifact 格式返回 of markdown"}}},
		"Fetch current documentation whenever the user asks about a library, framework, SDK, API, CLI tool, or cloud service": {Name: "c7",
			Says: []string{"Fetch current documentation whenever the user asks about a library, framework, SDK, API, CLI tool, or cloud service — even well-known ones like React and all of the others."}, Tools: named("a", "b")},
	} {
		if got := Text(of); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A description is short, on one line and without invisible characters, whatever a server
// says.
func FuzzText(f *testing.F) {
	f.Add("github", "The GitHub MCP Server provides tools to interact with GitHub.", "create_issue", "Create an issue\nin a repository")
	f.Add("", "", "", "")
	f.Add("x", "\u202eA b\u200bc.", "a-B_cD9", "Do it\x00 now, please; thank you")
	f.Fuzz(func(t *testing.T, name, says, tool, about string) {
		got := Text(Subject{Name: name, Says: []string{says}, Tools: []Tool{{tool, about}, {tool + "_x", about}, {"get_" + tool, says}, {says, tool}}})
		if display.Units(got) > longest || display.Fold(got) != got {
			t.Errorf("invalid description %q", got)
		}
	})
}
