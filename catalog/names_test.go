package catalog

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/catalog/directname"
	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

func TestToolsAreReachableByNamespacedNameOnly(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "fs"}, tools("read", "", "a/b", ""))
	equal(t, exposed(v), []string{"fs/a/b", "fs/read"})
	if _, ok := v.Tool("read"); ok {
		t.Error("a name without a server finds a tool")
	}
	if tool, ok := v.Tool("fs/a/b"); !ok || tool.Upstream != "a/b" || tool.Server != "fs" {
		t.Errorf("got %+v, %v", tool, ok)
	}
}

func TestSingleWrapExposesBareNames(t *testing.T) {
	t.Parallel()
	v := one(Server{Name: "fs", Single: true}, tools("read", "", "a/b", ""))
	equal(t, exposed(v), []string{"a/b", "read"})
	if _, ok := v.Tool("fs/read"); ok {
		t.Error("a name with a server finds a tool")
	}
}

// TestMalformedToolsAffectNoOthers gives every broken tool beside a good one.
func TestMalformedToolsAffectNoOthers(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, 70) + "true" + strings.Repeat("}", 70)
	v := one(Server{Name: "s"}, &Listing{Tools: raws(
		`{"name":"good","inputSchema":{}}`,
		`{"name":"good","description":"a second one","inputSchema":{}}`,
		`{"name":42}`, `{"name":"","inputSchema":{}}`, `{}`, `null`, `[]`, `"name"`, `{"name":`, ``,
		`{"name":"`+strings.Repeat("x", 10_000)+`","inputSchema":{}}`,
		`{"name":"zero\u200bwidth","inputSchema":{}}`, `{"name":"new\nline","inputSchema":{}}`, `{"name":"lone\ud800","inputSchema":{}}`, `{"name":"rtl\u202e","inputSchema":{}}`,
		`{"name":"bomb","inputSchema":`+deep+`}`,
		`{"name":"huge","inputSchema":{"x":"`+strings.Repeat("x", entry.MaxSchema)+`"}}`,
		`{"NAME":"shouting"}`, `{"name":"mistyped","description":7,"inputSchema":{}}`,
		// Odd but harmless: these stay.
		`{"name":"a b","inputSchema":{}}`, `{"name":"../..","inputSchema":{}}`, `{"name":"<b>&","inputSchema":{}}`, `{"name":"discоver_tool","inputSchema":{}}`, `{"name":"日本","inputSchema":{}}`,
		`{"name":"first","name":"last","inputSchema":{}}`,
	)})
	equal(t, exposed(v), []string{
		"s/../..", "s/<b>&", "s/a b", "s/discоver_tool", "s/good", "s/last", "s/日本",
	})
	golden(t, "warnings", strings.Join(v.Warnings(), "\n"))
	golden(t, "describe_odd", v.Texts().Describe(2048))
	for _, tool := range v.Tools() {
		v.Texts().Details(tool)
		tool.Definition()
	}
	if _, ok := v.Tool("s/&lt;b&gt;&amp;"); !ok {
		t.Error("a name copied from its line is not found")
	}
}

// A schema at a limit is offered. A larger one hides its tool only, and Unknown says why,
// unless the filter of the operator hides the tool.
func TestSchemaBombsAreHidden(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat(`{"not":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	sized := func(n int) string { return `{"x":"` + strings.Repeat("x", n-len(`{"x":""}`)) + `"}` }
	objects := func(n int) string { return `{"allOf":[` + strings.Repeat(`{},`, n-2) + `{}]}` }
	for what, c := range map[string]struct {
		schema func(int) string
		limit  int
		why    string
	}{
		"depth":   {nested, entry.MaxDepth, "its schema nests deeper than 64"},
		"size":    {sized, entry.MaxSchema, "its schema is larger than 262144 bytes"},
		"objects": {objects, entry.MaxObjects, "its schema has more than 2000 objects"},
	} {
		for _, member := range []string{`"inputSchema":BOMB`, `"inputSchema":{},"outputSchema":BOMB`, `"inputSchema":BOMB,"inputSchema":{}`} {
			tool := func(name, schema string) string {
				return `{"name":"` + name + `",` + strings.Replace(member, "BOMB", schema, 1) + `}`
			}
			l := &Listing{Tools: raws(tool("fits", c.schema(c.limit)), tool("bomb", c.schema(c.limit+1)), `{"name":"other","inputSchema":{}}`)}
			v := one(Server{Name: "s"}, l)
			equal(t, exposed(v), []string{"s/fits", "s/other"})
			equal(t, v.Warnings(), []string{`s: tool 2 "bomb" is left out: ` + c.why})
			if got := v.Texts().Unknown("s/bomb"); !strings.Contains(got, "it is left out: "+c.why+".\n") {
				t.Errorf("%s: got %s", what, got)
			}
			if got := one(Server{Name: "s", Filter: []string{"!bomb"}}, l).Texts().Unknown("s/bomb"); strings.Contains(got, "left out") {
				t.Errorf("%s, filtered: got %s", what, got)
			}
			if got := one(Server{Name: "s", Single: true}, l).Texts().Unknown("bomb"); !strings.Contains(got, c.why) {
				t.Errorf("%s, bare: got %s", what, got)
			}
		}
	}
}

// A pattern that matches no tool is probably misspelt.
func TestFilterThatMatchesNothing(t *testing.T) {
	t.Parallel()
	l := tools("read_file", "", "write_file", "")
	v := one(Server{Name: "s", Filter: []string{"read*", "wrote*", "!{delete,remove}_*", "!write_file"}}, l)
	equal(t, v.Warnings(), []string{
		`s: tool_filter pattern "wrote*" matches no tool`,
		`s: tool_filter pattern "!{delete,remove}_*" matches no tool`,
	})
	if w := one(Server{Name: "s", Filter: []string{"!*"}}, l).Warnings(); len(w) > 0 {
		t.Errorf("warned of a filter that hides everything: %q", w)
	}
}

func TestFilteredToolIsUnknownEverywhere(t *testing.T) {
	t.Parallel()
	s := Server{Name: "s", Filter: []string{"!secret*"}, Overrides: map[string]schema.ToolOverride{"secret_tool": {Description: "still a secret"}}}
	v := one(s, tools("secret_tool", "Steals a secret", "open", "Opens a door"))
	_, byName := v.Tool("s/secret_tool")
	_, byDirect := v.Direct("s__secret_tool")
	page, _ := v.Texts().Page("s", 0, 0, false)
	all, _ := v.Texts().Page("", 0, 0, false)
	loaded := v.Texts().Loaded("s")
	for what, text := range map[string]string{
		"describe": v.Texts().Describe(0), "page": page, "all": all, "loaded": loaded,
		"found": v.Texts().Found(Search{Queries: []string{"steals"}, Limit: 9}), "unknown": strings.TrimPrefix(v.Texts().Unknown("s/secret_too"), "Unknown tool: s/secret_too"),
	} {
		if strings.Contains(text, "secret_tool") {
			t.Errorf("%s shows it: %s", what, text)
		}
	}
	if byName || byDirect || len(found(v, "secret_tool", 9)) > 0 {
		t.Error("the hidden tool can be found")
	}
	if info, _ := v.Server("s"); info.Tools != 1 {
		t.Errorf("%d tools counted", info.Tools)
	}
}

func TestAliasesRenameTools(t *testing.T) {
	t.Parallel()
	s := Server{Name: "s", Aliases: map[string]string{
		"read_file": "read", "write_file": "taken", "gone": "x", "move": "bad\x00name", "same": "same",
	}}
	v := one(s, tools("read_file", "", "write_file", "", "taken", "", "move", "", "same", ""))
	equal(t, exposed(v), []string{"s/move", "s/read", "s/same", "s/taken", "s/write_file"})
	tool, _ := v.Tool("s/read")
	equal(t, []string{tool.Upstream, tool.Leaf, tool.Direct}, []string{"read_file", "read", "s__read"})
	if _, ok := v.Tool("s/read_file"); ok {
		t.Error("the name before the alias finds a tool")
	}
	equal(t, v.Warnings(), []string{
		`s: alias "x" is for tool "gone", which does not exist`,
		`s: tool "move" keeps its name: its alias is unfit`,
		`s: tool "write_file" keeps its name: its alias "taken" is taken`,
	})
}

func TestFirstServerKeepsASharedToolName(t *testing.T) {
	t.Parallel()
	c := New()
	c.Declare([]Server{{Name: "a/b"}, {Name: "a"}})
	put(c, "a", tools("b/c", "of a", "d", ""))
	equal(t, exposed(c.View()), []string{"a/b/c", "a/d"})
	put(c, "a/b", tools("c", "of a/b"))
	equal(t, exposed(c.View()), []string{"a/b/c", "a/d"})
	if tool, _ := c.View().Tool("a/b/c"); tool.Server != "a/b" {
		t.Errorf("owner is %s", tool.Server)
	}
	if n := strings.Count(c.View().Texts().Describe(0), "a/b/c"); n != 1 {
		t.Errorf("listed %d times", n)
	}
	equal(t, c.View().Warnings(), []string{`a: tool "a/b/c" is left out: another server has the name`})
	c.Put("a/b", nil)
	if tool, _ := c.View().Tool("a/b/c"); tool.Server != "a" {
		t.Errorf("owner is %s", tool.Server)
	}
}

func TestDirectNamesAreFitAndUnique(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("very_", 20) + "long"
	c := loadedWith([]Server{{Name: "a"}, {Name: "a__b"}, {Name: "one", Single: true}}, map[string]*Listing{
		"a":    tools("b__c", "", "plain", "", "with.dot", "", "with dot", "", long, "", long+"er", "", "x_0123abcd", ""),
		"a__b": tools("c", ""),
		"one":  tools("bare", "", "odd/name", ""),
	})
	v := c.View()
	fits := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	var list []string
	for _, tool := range v.Tools() {
		list = append(list, fmt.Sprintf("%s → %s", tool.Name, tool.Direct))
		if !fits.MatchString(tool.Direct) {
			t.Errorf("%q is not a valid direct name", tool.Direct)
		}
		if back, ok := v.Direct(tool.Direct); !ok || back != tool {
			t.Errorf("%q does not find %s", tool.Direct, tool.Name)
		}
	}
	for _, longest := range []int{directname.Max, 53, 51, 16} { // as hosts want them
		seen := map[string]bool{}
		for _, tool := range v.Tools() {
			short := directname.Short(tool.Direct, longest)
			if len(short) > longest || seen[short] || !fits.MatchString(short) || len(tool.Direct) <= longest && short != tool.Direct {
				t.Errorf("%d: %s is %q", longest, tool.Direct, short)
			}
			seen[short] = true
			if back, ok := v.Direct(short); !ok || back != tool {
				t.Errorf("%d: %q does not find %s", longest, short, tool.Name)
			}
			if name := wire.Get(c.View().DirectDefinition(tool, longest), "name"); string(name) != display.Quote(short) {
				t.Errorf("%d: %s is listed as %s", longest, tool.Name, name)
			}
		}
	}
	if tool, ok := v.Direct(strings.Repeat("a", 40) + "_01234567"); ok {
		t.Errorf("an unknown short name finds %s", tool.Name)
	}
	golden(t, "direct", strings.Join(list, "\n"))
	if len(v.Warnings()) > 0 {
		t.Error(v.Warnings())
	}
}
