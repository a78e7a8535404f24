package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/nearest"
)

// Limits of an answer about an unknown name.
const (
	nearestShown = 3
	othersShown  = 25
)

// Nearest returns up to n tools with similar names, best first.
func (v *View) Nearest(name string, n int) []*Tool {
	asked := newSpelling(display.Unescape(name))
	type scored struct {
		tool  *Tool
		score float64
	}
	var near []scored
	for _, t := range v.all().tools {
		if s := asked.like(t); s >= 0.5 {
			near = append(near, scored{t, s})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var tools []*Tool
	for _, s := range near[:min(n, len(near))] {
		tools = append(tools, s.tool)
	}
	return tools
}

// spelling is a name asked for, prepared for many comparisons.
type spelling struct {
	full, leaf []rune // lower case; leaf is what follows the last slash
	words      []string
}

func newSpelling(name string) spelling {
	name = strings.ToLower(display.Prefix(name, entry.MaxName))
	leaf := name[strings.LastIndexByte(name, '/')+1:]
	return spelling{[]rune(name), []rune(leaf), search.Terms(leaf)}
}

// like scores a tool: by edits over the whole name or its last part, or by words in common.
// An equal name scores 1. The right server adds a little.
func (s spelling) like(t *Tool) float64 {
	score := max(
		nearest.Closeness(s.full, t.Name),
		0.95*nearest.Closeness(s.leaf, t.Leaf),
		0.9*overlap(s.words, t.Terms),
	)
	if strings.HasPrefix(string(s.full), strings.ToLower(t.Server)+"/") {
		score *= 1.05
	}
	return score
}

// overlap is the share of words that two names have in common.
func overlap(a, b []string) float64 {
	both := 0
	for _, w := range a {
		if slices.Contains(b, w) {
			both++
		}
	}
	if both == 0 {
		return 0
	}
	return 2 * float64(both) / float64(len(a)+len(b))
}

// writeNear writes why the server lists the tool but it is left out, and similar names.
func (v Texts) writeNear(b *strings.Builder, name string) {
	if why := v.WhyHidden(name); why != "" {
		fmt.Fprintf(b, "The server lists it, but it is left out: %s.\n", why)
	}
	if near := v.Nearest(name, nearestShown); len(near) > 0 {
		fmt.Fprintf(b, "Did you mean: %s?\n", joinNames(near, nearestShown))
	}
}

// Unknown answers a call of an unknown tool: similar names, how to load its server, and how
// to find tools.
func (v Texts) Unknown(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Unknown tool: %s\n", display.Asked(name))
	v.writeNear(&b, name)
	t, ok := v.Guess(name)
	if !ok {
		t, ok = v.OfLeaf(name)
	}
	if ok {
		fmt.Fprintf(&b, "Call it by its name: %s {\"tool_name\": %s, \"tool_input\": {…}}.\n", v.UseTool(t.Access), display.Quote(t.Name))
	}
	server := v.ServerOf(name)
	if server != "" {
		b.WriteString(v.whyMissing(server))
	}
	if server == "" && !ok {
		b.WriteString(v.elsewhere())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// elsewhere returns the servers that may have other tools, and how to find known ones.
func (v Texts) elsewhere() (s string) {
	if unlisted := v.unlisted(); len(unlisted) > 0 {
		s = fmt.Sprintf("Servers of which no tools are known: %s. Call load_mcp with a name to get its tools.\n", joinServers(unlisted))
	}
	return s + v.NotListed("\n") + v.howToFind()
}

// howToFind returns how many tools there are and how to find one.
func (v Texts) howToFind() string {
	n := len(v.all().tools)
	if n == 0 {
		return "No tools are known now."
	}
	return fmt.Sprintf(`%s in all: discover_tool {"query": "words"} finds them.`, display.Plural(n, "tool"))
}

// WhyHidden returns why a tool that a server lists is not offered, "" for any other name. A
// tool that the operator's filter hides is treated as nonexistent.
func (v *View) WhyHidden(name string) string {
	if why := WhyNotApproved(v, name); why != "" {
		return why
	}
	if Denied(v, name) != nil {
		return "the policy of the config refuses every call of it"
	}
	for _, p := range v.all().parts {
		upstream, mine := name, p.server.Single
		if !mine {
			upstream, mine = strings.CutPrefix(name, p.server.Name+"/")
		}
		if !mine || p.index == nil {
			continue
		}
		if h, ok := p.index.hidden[upstream]; ok && p.filter.Passes(upstream, h.Tool.Access) {
			return h.Why
		}
		if why := p.whyNoTask(upstream); why != "" {
			return why
		}
	}
	return ""
}

// WhyUnknown says in a line why there is no tool of a name now.
func (v Texts) WhyUnknown(name string) string {
	if why := v.WhyHidden(name); why != "" {
		return why
	}
	if t, ok := v.Guess(name); ok {
		return "its name is " + t.Name
	}
	server := v.ServerOf(name)
	said := "unknown."
	if p := v.part(server); p == nil || p.index != nil {
		if near := v.Nearest(name, nearestShown); len(near) > 0 {
			said = "unknown; did you mean " + joinNames(near, nearestShown) + "?"
		}
	}
	return strings.TrimSpace(said + " " + v.whyMissing(server))
}

// whyMissing explains a name whose server part is known but has no such tool.
func (v Texts) whyMissing(server string) string {
	p := v.part(server)
	switch {
	case p == nil:
		return ""
	case p.info.Loaded && p.server.Single:
		return fmt.Sprintf("%s has %s: discover_tool with no argument lists them.\n", p.called(), display.Plural(len(p.tools), "tool"))
	case p.info.Loaded || p.info.Stored:
		return fmt.Sprintf("Server %s has %s: discover_tool {\"server\": %s} lists them.\n",
			server, display.Plural(len(p.tools), "tool"), display.Quote(server))
	case p.server.Lazy:
		return fmt.Sprintf("No tools of server %s are known: call load_mcp {\"mcp_name\": %s}, then try again.%s\n", server, display.Quote(server), p.note())
	}
	if p.info.Down != "" {
		return fmt.Sprintf("Server %s could not be started: %s.%s\n", server, display.Cut(p.info.Down, display.LineWidth), p.note())
	}
	return fmt.Sprintf(v.useTools("Server %s is still starting: use_tool works on its tools, discover_tool {\"server\": %s} lists them.%s\n"), server, display.Quote(server), p.note())
}

// UnknownServer answers a request for a server that is not offered.
func (v Texts) UnknownServer(name string) string {
	if p := v.single(); p != nil {
		return fmt.Sprintf(`There is but one server here, %s: leave "server" out.`, p.called())
	}
	s := "Unknown server: " + display.Asked(name) + "."
	if near := nearestServer(v.View, name); near != "" {
		s += " Did you mean " + near + "?"
	}
	if known := slices.Concat(v.lazy, v.loaded); len(known) > 0 {
		s += " Servers: " + joinServers(known) + "."
	}
	s = strings.TrimSpace(s + " " + v.Unlisted())
	if len(v.parts) == 0 {
		s += " " + noServers
	}
	return s
}

// NotListed names the eager servers that have no listing. Each sentence ends with end.
func (v Texts) NotListed(end string) string { return notListed(v.eager, end) }

func notListed(eager []*serverView, end string) string {
	starting, down := startingAndDown(eager)
	s := ""
	if len(starting) > 0 {
		s += "Servers still starting: " + joinServers(starting) + "." + end
	}
	if len(down) > 0 {
		s += "Servers that could not be started: " + joinServers(down) + "." + end
	}
	return s
}

// startingAndDown splits servers into those that are starting and those that could not be
// started.
func startingAndDown(eager []*serverView) (starting, down []*serverView) {
	for _, p := range eager {
		if p.info.Down != "" {
			down = append(down, p)
		} else {
			starting = append(starting, p)
		}
	}
	return starting, down
}

// Unlisted is NotListed on one line, "" if an answer lacks no server.
func (v Texts) Unlisted() string { return strings.TrimSpace(notListed(v.eager, " ")) }

// AnyUnlisted reports whether nothing is known of a server.
func (v Texts) AnyUnlisted() bool { return len(v.unlisted())+len(v.eager) > 0 }

// NotLoaded names the lazy servers that are not loaded, "" if there are none.
func (v Texts) NotLoaded() string { return joinServers(v.lazy) }

func joinNames(tools []*Tool, most int) string {
	var list []string
	for _, t := range tools[:min(most, len(tools))] {
		list = append(list, t.Name)
	}
	return strings.Join(list, ", ")
}

func joinServers(ps []*serverView) string {
	var list []string
	for _, p := range ps[:min(othersShown, len(ps))] {
		list = append(list, p.called()+p.note())
	}
	s := strings.Join(list, ", ")
	if more := len(ps) - othersShown; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
