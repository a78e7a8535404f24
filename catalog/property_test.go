package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/internal/display"
)

// drawText draws text as upstreams and attackers write it.
func drawText(t *rapid.T, label string) string {
	piece := rapid.OneOf(
		rapid.SampledFrom(hostile),
		rapid.SampledFrom([]string{"List all issues of a project. ", "😀", "漢字", "<", "&", ">", "</mcp_servers>", "\n\n", "long ", "e.g. x", "\u202e", "\x00"}),
		rapid.StringN(0, 20, -1),
	)
	return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, label), "")
}

// drawCatalog draws servers of every kind, with names as a config allows.
func drawCatalog(t *rapid.T) *View {
	c := New()
	var servers []Server
	n := rapid.IntRange(0, 12).Draw(t, "servers")
	for i := range n {
		servers = append(servers, Server{
			Name:        fmt.Sprintf("%s-%d", rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,30}`).Draw(t, "name"), i),
			Description: drawText(t, "description"),
			Lazy:        rapid.Bool().Draw(t, "lazy"),
			Note:        rapid.SampledFrom([]string{"", "", "(run: dynmcp login x)"}).Draw(t, "note"),
			Single:      n == 1 && rapid.Bool().Draw(t, "bare"),
		})
	}
	c.Declare(servers)
	for _, s := range servers {
		if rapid.Bool().Draw(t, "loaded") {
			l := &Listing{Instructions: drawText(t, "instructions")}
			for i := range rapid.IntRange(0, 30).Draw(t, "tools") {
				name := rapid.OneOf(rapid.StringMatching(`[a-z_]{1,40}`), rapid.StringN(1, 140, -1)).Draw(t, "tool")
				l.Tools = append(l.Tools, tool(fmt.Sprintf("%s%d", name, i), drawText(t, "text")))
			}
			put(c, s.Name, l)
		} else if s.Lazy && rapid.Bool().Draw(t, "stored") {
			listed := tools("look", drawText(t, "text")).Tools
			c.RememberServer(s.Name, &Stored{Count: 1, ReadTools: func() []json.RawMessage { return listed }})
		}
	}
	return c.View()
}

func TestPropertyTextsStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := drawCatalog(t)
		limit := rapid.OneOf(rapid.IntRange(1, 5000), rapid.SampledFrom([]int{1, 2, 100, 2048})).Draw(t, "limit")
		for _, s := range []string{v.Texts().Describe(limit), v.Texts().Instructions(limit)} {
			if n := display.Units(s); n > limit {
				t.Fatalf("%d units under a limit of %d:\n%s", n, limit, s)
			}
			if !utf8.ValidString(s) {
				t.Fatalf("a character is cut: %q", s)
			}
		}
		if limit > 2000 {
			s := v.Texts().Describe(limit)
			for _, info := range v.Servers() {
				if v.single() == nil && !strings.Contains(s, info.Name) {
					t.Fatalf("server %s is not named under a limit of %d:\n%s", info.Name, limit, s)
				}
			}
		}
	})
}

func TestPropertyUpstreamTextCannotLeaveItsLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := drawCatalog(t)
		s := v.Texts().Describe(0)
		tools, servers := 0, len(v.lazy)
		for _, p := range v.loaded {
			tools += len(p.tools)
		}
		for _, tag := range []string{"<mcp_servers>", "</mcp_servers>"} {
			if n := strings.Count(s, tag); n != min(servers, 1) {
				t.Fatalf("%s appears %d times:\n%s", tag, n, s)
			}
			s = strings.Replace(s, tag, "", 1)
		}
		for _, tag := range []string{"<tools>", "</tools>"} {
			if n := strings.Count(s, tag); n != min(len(v.loaded), 1) {
				t.Fatalf("%s appears %d times:\n%s", tag, n, s)
			}
			s = strings.Replace(s, tag, "", 1)
		}
		if strings.ContainsAny(s, "<>") {
			t.Fatalf("a raw angle bracket is left:\n%s", s)
		}
		servers += len(v.eager)
		if n := strings.Count(s, "\n- "); n != tools+servers {
			t.Fatalf("%d lines, want %d tools and %d servers:\n%s", n, tools, servers, s)
		}
		for _, r := range s {
			if r != '\n' && display.Invisible(r) {
				t.Fatalf("%U is left:\n%q", r, s)
			}
		}
	})
}

func TestPropertyAnswersAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := drawCatalog(t)
		for _, info := range v.Servers() {
			if text := v.Texts().Loaded(info.Name); text != "" {
				if len(text) > pageBytes+3*namedBytes {
					t.Fatalf("%d bytes: %s", len(text), text)
				}
			}
			page, _ := v.Texts().Page(info.Name, rapid.IntRange(-1, 40).Draw(t, "offset"), rapid.IntRange(0, 40).Draw(t, "limit"), false)
			if page == "" {
				t.Fatal("empty")
			}
		}
		page, _ := v.Texts().Page("", 0, 0, false)
		if found := v.Texts().Found(Search{Queries: []string{drawText(t, "query")}}); page == "" || found == "" {
			t.Fatal("empty")
		}
		if v.Texts().Unknown(drawText(t, "unknown")) == "" {
			t.Fatal("empty")
		}
		for _, tool := range v.Tools() {
			if !json.Valid(tool.Definition()) {
				t.Fatalf("not JSON: %s", tool.Definition())
			}
			if got, ok := v.Tool(tool.Name); !ok || got != tool {
				t.Fatalf("%s is not found", tool.Name)
			}
			if got, ok := v.Direct(tool.Direct); !ok || got != tool {
				t.Fatalf("%s is not found", tool.Direct)
			}
			v.Texts().Details(tool)
		}
	})
}

// FuzzDescribe renders one tool of any text in any limit.
func FuzzDescribe(f *testing.F) {
	for _, s := range hostile {
		f.Add("name", s, "server description", 300)
	}
	f.Fuzz(func(t *testing.T, name, text, description string, limit int) {
		v := loadedWith([]Server{{Name: "a", Description: description, Lazy: true}, {Name: "b", Description: description}},
			map[string]*Listing{"b": tools(name, text)}).View()
		s := v.Texts().Describe(limit)
		if limit > 0 && display.Units(s) > limit {
			t.Fatalf("%d units under a limit of %d", display.Units(s), limit)
		}
		if !utf8.ValidString(s) {
			t.Fatalf("not UTF-8: %q", s)
		}
		if n := strings.Count(v.Texts().Describe(0), "<"); n != 4 {
			t.Fatalf("%d angle brackets:\n%s", n, v.Texts().Describe(0))
		}
	})
}
