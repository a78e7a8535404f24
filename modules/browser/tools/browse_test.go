package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/mcptest/viewtest"
)

// testView has two servers that are loaded and two that are not.
func testView() *catalog.View {
	files := viewtest.Raws(
		`{"name":"read_file","description":"Reads a File.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}},"x":[1.0,9007199254740993]}`,
		`{"name":"write_file","description":"Writes.","inputSchema":{"type":"object"},"tags":["file","disk"]}`,
		`{"inputSchema":{"type":"object"},"name":"stat","description":"Says how large a file is."}`,
	)
	return viewtest.View([]catalog.Server{
		{Name: "fs", Description: "Files."}, {Name: "web", Description: "Pages."},
		{Name: "mail", Description: "Letters.", Lazy: true}, {Name: "slow"},
	}, map[string]*catalog.Listing{"fs": files, "web": viewtest.Tools("fetch", "Fetches a page.")})
}

func TestBrowse(t *testing.T) {
	for query, want := range map[string]string{
		// The dialect.
		`$.tools[?(@.name contains 'file')].name`:                        `["fs/read_file","fs/write_file"]`,
		`$.tools[?(@.tags contains 'disk')].name`:                        `["fs/write_file"]`,
		`$.tools[?(@.description =~ /(?i)file/)].name`:                   `["fs/read_file","fs/stat"]`,
		`$.tools[?(@.description =~ /FILE/i && @.name!="fs/stat")].name`: `["fs/read_file"]`,
		`$.tools[?(!(@.name contains 'file'))].name`:                     `["fs/stat","web/fetch"]`,
		// The standard.
		`$.tools[*].name`: `["fs/read_file","fs/stat","fs/write_file","web/fetch"]`,
		`$.tools[?(@.name=='fs/read_file')].description`:   `["Reads a File."]`,
		`$.tools[?search(@.description, '(?i)file')].name`: `["fs/read_file","fs/stat"]`,
		`$.tools[?match(@.name, 'web/.*')].name`:           `["web/fetch"]`,
		`$..inputSchema`:                                   `[{"type":"object","properties":{"path":{"type":"string"}}},{"type":"object"},{"type":"object"},{"type":"object"}]`,
		`$.tools[0:2].name`:                                `["fs/read_file","fs/stat"]`,
		`$.tools[0:5].name`:                                `["fs/read_file","fs/stat","fs/write_file","web/fetch"]`,
		`$.tools[::-1].name`:                               `["web/fetch","fs/write_file","fs/stat","fs/read_file"]`,
		`$.servers[*].name`:                                `["fs","web","mail","slow"]`,
		`$.servers[*].state`:                               `["loaded","loaded","not loaded","starting"]`,
		`$.servers[?(@.name=='fs')].tools[*]`:              `["fs/read_file","fs/stat","fs/write_file"]`,
		`$.servers[?length(@.tools)==1].name`:              `["web"]`,
		`$.tools[?(@.inputSchema.properties.path)].name`:   `["fs/read_file"]`,
		`$["tools"][-1]["name"]`:                           `"web/fetch"`,
		`$.tools[0].x`:                                     `[1.0,9007199254740993]`,
		`$.tools[0].x[1]`:                                  `9007199254740993`,
		`$.tools[?@.name == $.servers[0].tools[2]].name`:   `["fs/write_file"]`,
		`$.tools[?(@.name =~ /^fs.*[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q].*.*.*.*.*.*.*.*..*..$/)].name`: `["fs/read_file","fs/write_file"]`,
		`$.tools[0]['name','description']`:                             `["fs/read_file","Reads a File."]`,
		`$.tools[?(@.name contains '..*..*..*..*..*..*..*..*..*,,,')]`: `[]`,
		`$.tools[?@.x[0] == 1].name`:                                   `["fs/read_file"]`,
		`$.tools[1].*`:                                                 `[{"type":"object"},"fs/stat","Says how large a file is."]`,
		`$.tools[?(@.name contains "it's" || @.name == 'no "q"')]`:     `[]`,
	} {
		answer, note, err := browse(testView(), query, 0, func(*catalog.Tool) {})
		if err != nil || string(answer) != want {
			t.Errorf("%s: got %s, %q, %v, want %s", query, answer, note, err, want)
		}
	}
}

func TestBrowseSaysWhatMayBringMore(t *testing.T) {
	answer, note, err := browse(testView(), `$.tools[?(@.name contains 'letter')]`, 0, func(*catalog.Tool) {})
	want := "[]\n" + `Nothing of what is known matches. Servers of which nothing is known: mail. To load one: mcp_call {"method": "tools/list", "params": {"server": "mail"}}. Servers still starting: slow.<nil>`
	if got := string(answer) + "\n" + note + fmt.Sprint(err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWrongQueriesSayWhere(t *testing.T) {
	var out strings.Builder
	for _, query := range []string{
		``, `tools`, `$.tools[`, `$.tools[?(@.name contains 'file']`, `$.tools[?(@.name contains file)]`, `$.tools[?(@.name =~ /(/)]`,
		`$.tools[?(@.name =~ 'a' && @.x = 1)]`, `$.tools[?(@.name=~/a`, `$.tools[?(@..name contains 'x')]`, `$.tools[?nothing(@)]`, `$.tools[01]`,
		`$.tools[?count($..*)>1]`, `$.tools[?(@.name contains 'x' && count($ ..*)>1)]`, `$.tools[?count($.tools[?@.x])>5]`, `$['a','b','c']['a','b','c']['a','b','c']`, `$['a','b','c'][?@.x['a','b','c']['a','b']]`, `$..a..b..c`, `$` + strings.Repeat(`[*]`, 9), `$.` + strings.Repeat("a", 1000),
	} {
		_, _, err := browse(testView(), query, 0, func(*catalog.Tool) {})
		if err == nil {
			t.Errorf("%s: no error", query)
			continue
		}
		fmt.Fprintln(&out, err)
	}
	viewtest.Golden(t, "browse_wrong", out.String())
}

func TestWhatIsCutIsCounted(t *testing.T) {
	v := viewtest.One(viewtest.Many(200))
	for _, query := range []string{`$.tools[*]`, `$.tools`} {
		answer, note, err := browse(v, query, 0, func(*catalog.Tool) {})
		if err != nil || len(answer) > maxAnswer || !json.Valid(answer) || !strings.HasPrefix(note, "Cut: the first ") || !strings.Contains(note, " of 200.") {
			t.Errorf("%s: got %d bytes, %q, %v", query, len(answer), note, err)
		}
	}
	whole, _ := Query(v, `$.tools[*]`)
	if answer, note, err := browse(v, `$.tools[*]`, len(whole), func(*catalog.Tool) {}); err != nil || note != "" || string(answer) != string(whole) {
		t.Errorf("of %d bytes, which are allowed, got %d, %q, %v", len(whole), len(answer), note, err)
	}
	if _, note, _ := browse(v, `$.tools[*]`, len(whole)-1, func(*catalog.Tool) {}); !strings.HasPrefix(note, "Cut: the first 199 of 200.") {
		t.Errorf("with one byte less got %q", note)
	}
	large := viewtest.Raws(`{"name":"t","description":"` + strings.Repeat("long ", 5000) + `","inputSchema":{"type":"object"}}`)
	_, _, err := browse(viewtest.One(large), `$.tools[0].description`, 0, func(*catalog.Tool) {})
	if err == nil || !strings.Contains(err.Error(), "has 25002 characters, of which at most 16384 are shown") {
		t.Errorf("got %v", err)
	}
}

func TestDescriptionForTheBrowser(t *testing.T) {
	v := testView()
	viewtest.Golden(t, "browse_describe", describe(v, 0)+"\n\n"+describe(v, 200))
}

func TestBrowseSaysWhichDefinitionsWereRead(t *testing.T) {
	for query, want := range map[string][]string{
		`$`:                           {"fs/read_file", "fs/stat", "fs/write_file", "web/fetch"},
		`$.tools`:                     {"fs/read_file", "fs/stat", "fs/write_file", "web/fetch"},
		`$.tools[1]`:                  {"fs/stat"},
		`$.tools[?@.name=='fs/stat']`: {"fs/stat"},
		`$.tools[0].inputSchema`:      {"fs/read_file"},
		`$..inputSchema`:              {"fs/read_file", "fs/stat", "fs/write_file", "web/fetch"},
		`$.tools[*].name`:             nil,
		`$..type`:                     nil,
		`$.servers[0]`:                nil,
		`$.tools[`:                    nil,
	} {
		var got []string
		_, _, _ = browse(testView(), query, 0, func(t *catalog.Tool) { got = append(got, t.Name) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{`$.tools[*]`, `$.tools`} { // the answer is cut
		n := 0
		answer, _, _ := browse(viewtest.One(viewtest.Many(200)), query, 0, func(*catalog.Tool) { n++ })
		var shown []json.RawMessage
		if err := json.Unmarshal(answer, &shown); err != nil || n != len(shown) || n == 0 || n == 200 {
			t.Errorf("%s: %d were read, of %d in the answer: %v", query, n, len(shown), err)
		}
	}
}
