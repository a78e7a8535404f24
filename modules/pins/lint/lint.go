// Package lint finds signs of attacks on models in the definitions of tools: hidden characters,
// instructions to a model, names that imitate others, members that ask for secrets. A finding may
// be harmless, and an attack may have none.
package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/pins/lookalike"
)

// Grades of findings.
const (
	High = "high" // rare in honest definitions
	Low  = "low"  // occurs in some
)

// A Finding is a match of a rule.
type Finding struct {
	Rule  string `json:"rule"`
	Grade string `json:"grade"`
	Where string `json:"where"` // the member, such as inputSchema.properties.path.description
	Text  string `json:"text"`  // the match, on one line, without invisible characters
}

// String returns the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Grade, f.Where, f.Text, f.Rule)
}

// Names are the tools of all servers, to find the tool that a text refers to.
type Names struct {
	servers map[string][]string // by tool
	alike   map[string][]string // tools by what their names look like
}

// Add adds a tool of a server.
func (n *Names) Add(server, tool string) {
	if n.servers == nil {
		n.servers, n.alike = map[string][]string{}, map[string][]string{}
	}
	if n.servers[tool] == nil {
		skeleton := lookalike.Skeleton(tool)
		n.alike[skeleton] = append(n.alike[skeleton], tool)
	}
	n.servers[tool] = append(n.servers[tool], server)
}

// Check returns the findings in a tool of a server.
func Check(server, tool string, raw json.RawMessage, names *Names) []Finding {
	c := checker{server: server, tool: tool, names: names}
	c.name()
	for key, value := range wire.Members(raw) {
		switch name, _ := wire.Text(key); name {
		case "name", "_meta", "icons", "execution":
		case "inputSchema":
			c.schema(value)
			c.walk(name, value)
		default:
			c.walk(name, value)
		}
	}
	return c.found
}

type checker struct {
	server, tool string
	names        *Names
	found        []Finding
}

func (c *checker) add(rule, grade, where, format string, args ...any) {
	f := Finding{rule, grade, where, fmt.Sprintf(format, args...)}
	if !slices.Contains(c.found, f) {
		c.found = append(c.found, f)
	}
}

// name checks the name of the tool.
func (c *checker) name() {
	c.characters("name", c.tool)
	for _, other := range c.names.alike[lookalike.Skeleton(c.tool)] {
		if other != c.tool {
			c.add("look-alike", High, "name", "%+q looks like %+q of %s", c.tool, other, strings.Join(c.names.servers[other], ", "))
		}
	}
}

// walk checks all strings of a value.
func (c *checker) walk(where string, value json.RawMessage) {
	switch {
	case wire.IsObject(value):
		for key, member := range wire.Members(value) {
			name, _ := wire.Text(key)
			c.characters(where, name)
			c.walk(where+"."+name, member)
		}
	case len(value) > 0 && value[0] == '[':
		for element := range wire.Elements(value) {
			c.walk(where+"[]", element)
		}
	case len(value) > 0 && value[0] == '"':
		text, _ := wire.Text(value)
		c.characters(where, text)
		c.says(where, text)
		c.otherTools(where, text)
	}
}

// characters finds invisible characters, and those that change the displayed order.
func (c *checker) characters(where, text string) {
	emoji := false // the previous one may be followed by a joiner or selector
	for _, r := range text {
		switch {
		case r == '\u200d' || unicode.Is(unicode.Variation_Selector, r):
			if !emoji {
				c.add("hidden-characters", High, where, `\u{%X} shows nothing`, r)
			}
			continue
		case r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			c.add("hidden-characters", High, where, `\u{%X} changes the order of what is shown`, r)
		case r != '\n' && r != '\t' && r != '\r' && r != '\ufeff' && r != '\u00ad' && display.Invisible(r):
			c.add("hidden-characters", High, where, `\u{%X} shows nothing`, r)
		}
		emoji = unicode.In(r, unicode.So, unicode.Sk, unicode.Sm) || r >= '0' && r <= '9' || r == '#' || r == '*' || r == 0x203C || r == 0x2049
	}
}

// says finds suspicious texts.
func (c *checker) says(where, text string) {
	for _, r := range texts {
		if found := r.expr().FindString(text); found != "" {
			c.add(r.name, r.grade, where, "%s", display.Quote(display.Cut(display.Fold(found), 80)))
		}
	}
}

// schema finds members of an input that ask for unrelated data.
func (c *checker) schema(schema json.RawMessage) {
	for key, value := range wire.Members(wire.Get(schema, "properties")) {
		name, _ := wire.Text(key)
		for _, r := range members {
			if r.expr().MatchString(name) {
				c.add(r.name, r.grade, "inputSchema.properties", "%q is asked for", name)
			}
		}
		if wire.IsObject(value) {
			c.schema(value)
		}
	}
}

// shortestTool is the shortest name of a tool, in bytes, that is taken for one in a text.
const shortestTool = 8

// otherTools finds the names of tools of other servers that this one lacks.
func (c *checker) otherTools(where, text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && r != '/' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}) {
		server, tool, ok := strings.Cut(word, "/")
		if !ok {
			server, tool = "", word
		}
		owners := c.names.servers[tool]
		if len(tool) < shortestTool || len(owners) != 1 || owners[0] == c.server || server != "" && server != owners[0] || !strings.ContainsAny(tool, "_-") {
			continue
		}
		c.add("other-servers-tool", Low, where, "%q is a tool of %s", tool, owners[0])
	}
}
