package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

// linesOf returns the words in the lines of servers, by the name of the server.
func linesOf(texts ...string) map[string][]string {
	lines := map[string][]string{}
	for line := range strings.Lines(strings.Join(texts, "\n")) {
		if line, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			name, words, _ := strings.Cut(line, ": ")
			lines[name] = append(lines[name], words)
		}
	}
	return lines
}

// hundred declares a hundred servers, two of them eager. Every so many have a stored listing.
func hundred(every int) *Catalog {
	c := New()
	var servers []Server
	for i := range 100 {
		servers = append(servers, Server{Name: fmt.Sprintf("server-%02d", i), Lazy: i%50 != 49, Description: fmt.Sprintf("Number %d of many: reads, writes and deletes what people have there.", i)})
	}
	c.Declare(servers)
	for i := 0; i < 100; i += every {
		store(c, servers[i].Name, tools("read", "Read it."))
	}
	return c
}

// store gives a server a stored listing.
func store(c *Catalog, name string, l *Listing) {
	c.RememberServer(name, &Stored{Count: len(l.Tools), ReadTools: func() []json.RawMessage { return l.Tools }})
}

func TestManyServersAreInTwoTexts(t *testing.T) {
	t.Parallel()
	v := hundred(1).View().Texts()
	first, rest := v.Describe(2048), v.DescribeRest("Use a tool.", 2048)
	golden(t, "describe_divided", first+"\n---\n"+rest)
	for name, said := range linesOf(first, rest) {
		if said[0] == "" {
			t.Errorf("%s has no words", name)
		}
	}
	for _, every := range []int{1, 3, 100} {
		v := hundred(every).View().Texts()
		for limit := 11; limit < 8000; limit += 101 {
			first, rest := v.Describe(limit), v.DescribeRest("Use a tool.", limit)
			if n := max(display.Units(first), display.Units(rest)); n > limit {
				t.Fatalf("%d units under a limit of %d", n, limit)
			}
			lines := linesOf(first, rest)
			for _, info := range v.Servers() {
				if n := len(lines[info.Name]); info.Lazy && (n > 1 || n == 0 && limit >= 2000) {
					t.Fatalf("limit %d: %s has %d lines:\n%s\n---\n%s", limit, info.Name, n, first, rest)
				}
			}
		}
	}
}

// The servers of DescribeRest do not depend on listings: a load moves no line.
func TestDivisionDependsOnlyOnTheConfig(t *testing.T) {
	t.Parallel()
	c := hundred(3)
	names := func(text string) (names []string) {
		for name := range linesOf(text) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	before := names(c.View().Texts().DescribeRest("", 2048))
	for i := range 100 {
		store(c, fmt.Sprintf("server-%02d", i), tools("read", "Read it.", "write", "Write it."))
	}
	equal(t, names(c.View().Texts().DescribeRest("", 2048)), before)
}

// Servers that fit into the first text are not in the second.
func TestFewServersAreInTheDescriptionAlone(t *testing.T) {
	t.Parallel()
	for _, v := range []*View{office().View(), New().View(), one(Server{Name: "a", Single: true}, tools("x", ""))} {
		for _, limit := range []int{0, 2048} {
			equal(t, v.Texts().DescribeRest("Use a tool.", limit), "Use a tool.")
		}
	}
}

// Some hosts show models no more than the first sentence of a description.
func TestFirstSentenceNamesServers(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 2048} {
		v := hundred(1).View().Texts()
		first, _, _ := strings.Cut(v.Describe(limit), " {")
		if !strings.HasPrefix(first, "Finds tools of server-00, server-01, ") || !strings.HasSuffix(first, " more servers for use_tool.") || display.Units(first) > firstSentence || display.Units(first) < firstSentence-20 {
			t.Errorf("limit %d: got %q, %d units", limit, first, display.Units(first))
		}
		if got := v.Instructions(limit); !strings.Contains(got, "MCP servers server-00, server-01, ") {
			t.Errorf("limit %d: got %q", limit, got)
		}
	}
}
