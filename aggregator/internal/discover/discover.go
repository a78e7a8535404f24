// Package discover is the default surface: the catalogue as the description of discover_tool, and
// tools to use it. Each answers as text: most hosts would show a structured copy in place of the
// text, without its instructions. Programs get the listing of load_mcp as data, too.
package discover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// New returns the surface.
func New(cfg *schema.Config) surface.Surface {
	s := surface.Surface{
		Tools: []surface.Tool{{
			Name: "discover_tool",
			Definitions: func(v *catalog.View, _ int) []json.RawMessage {
				return []json.RawMessage{surface.Define("discover_tool", v.Texts().Describe(cfg.Catalog.MaxChars), surface.WithReadingOn(discoverInput, cfg), surface.ReadOnly)}
			},
			Answer: surface.ReadingOn(cfg, discover),
		}},
		Texts: []surface.Texts{texts{cfg}},
	}
	if results.Limits(cfg) {
		s.ReadsOn = "discover_tool"
	}
	s.Tools = append(s.Tools, useTools(cfg)...)
	if hasLazy(cfg) {
		s.Tools = append(s.Tools, surface.Tool{
			Name:        "load_mcp",
			Definitions: surface.Fixed("load_mcp", loadDescription, loadInput, `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true}`),
			Answer:      load,
		})
	}
	s.Tools = append(s.Tools, pinned(cfg)...)
	return s
}

func hasLazy(cfg *schema.Config) bool {
	return slices.ContainsFunc(cfg.Servers, func(s schema.Server) bool { return !s.Disabled && s.Lazy() })
}

type texts struct{ cfg *schema.Config }

func (t texts) Instructions(v *catalog.View) string {
	return v.Texts().Instructions(t.cfg.Catalog.MaxChars)
}

func (t texts) HowToCall(tool *catalog.Tool) string {
	return fmt.Sprintf(`%s: {"tool_name": %s, "tool_input": {…}}`, usedBy(t.cfg, tool), wire.Quote(tool.Name))
}

func (t texts) HowToRead(tool string) string {
	return fmt.Sprintf(`discover_tool {"tool_name": %s}`, wire.Quote(tool))
}

func (t texts) HowToLoad(server string) string {
	if !hasLazy(t.cfg) {
		return ""
	}
	return fmt.Sprintf(`load_mcp {"mcp_name": %s}`, wire.Quote(server))
}

const (
	loadDescription = "Starts a server of which no tools are known, and lists what it has."

	// Every session pays for these texts. What is rare is explained where it is needed: an answer that
	// is cut names "offset" or "full".
	discoverInput = `{"type":"object","properties":{` +
		`"query":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}],"description":"What to do, in words. Returns the best tools with their definitions."},` +
		`"tool_name":{"type":"string","description":"Returns its definition."},` +
		`"server":{"type":"string","description":"Lists its tools; with query, searches only them."},` +
		`"full":{"type":"boolean"},"limit":{"type":"integer"},"offset":{"type":"integer"},"check":{"type":"boolean"}}}`
	loadInput = `{"type":"object","properties":{"mcp_name":{"type":"string"},` +
		`"query":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}],"description":"Lists only what matches."},` +
		`"retry":{"type":"boolean","description":"Only if your user asks for it."}},"required":["mcp_name"],"additionalProperties":false}`
)

// A query holds the arguments of discover_tool.
type query struct {
	tool, server  string
	words         []string // queries
	full          bool
	limit, offset int
	room          int // tokens for the definition of one of several tools; 0 is no limit
}

// checkTexts records an error if an argument has too many texts.
func checkTexts(in *surface.Arguments, name string, texts []string) {
	const most = 10
	if len(texts) > most {
		in.Fail("%q has %d texts, at most %d", name, len(texts), most)
	}
}

// discover answers discover_tool: one tool, the best matches, or a list.
func discover(c *surface.Call) {
	in := surface.ReadArguments(c.Arguments, "tool_name", "full", "query", "server", "limit", "offset", "check")
	q := query{
		full: in.Flag("full"), words: in.Texts("query"), server: in.Text("server"),
		limit: in.Number("limit"), offset: in.Number("offset"),
	}
	tools, check := in.Texts("tool_name"), in.Flag("check")
	if !check {
		checkTexts(in, "tool_name", tools)
	} else if len(tools) == 0 || len(tools) > mostChecked {
		in.Fail(`with "check", "tool_name" names 1 to %d tools, not %d`, mostChecked, len(tools))
	}
	checkTexts(in, "query", q.words)
	if len(q.words) > 1 && q.offset > 0 {
		in.Fail(`"offset" continues one query, not %d`, len(q.words))
	}
	if err := in.Err(); err != nil {
		c.InvalidArguments(err)
		return
	}
	begin := func() { q.ask(c) }
	switch {
	case check:
		begin = func() { c.Text(preflight(c, tools)) }
	case len(tools) == 1:
		q.tool = tools[0]
	case len(tools) > 1:
		q.room = catalog.DefinitionsTokens
		begin = func() { q.askEach(c, tools, nil, true) }
	}
	if c.View().Unread() {
		c.Go(begin)
		return
	}
	begin()
}

// mostChecked is how many tools may be checked at once.
const mostChecked = 50

// preflight says of each name whether it can be called now, and why not.
func preflight(c *surface.Call, names []string) string {
	var b strings.Builder
	all := 0
	for _, name := range names {
		can, says := c.Preflight(name)
		word := "no"
		if can {
			word, all = "yes", all+1
		}
		if says != "" {
			word += ": " + display.Escape(display.Fold(says))
		}
		fmt.Fprintf(&b, "- %s: %s\n", display.Asked(name), word)
	}
	return fmt.Sprintf("%d of %d can be called now:\n%s", all, len(names), strings.TrimSuffix(b.String(), "\n"))
}

// askEach asks about tools in order, and answers with contents and those of the answers. That is an error if
// failed is set and each of them is one.
func (q query) askEach(c *surface.Call, tools []string, contents []json.RawMessage, failed bool) {
	if len(tools) == 0 {
		result := results.Of(contents)
		if failed {
			result = wire.Set(result, "isError", []byte("true"))
		}
		c.Reply(result, nil)
		return
	}
	q.tool = tools[0]
	q.ask(c.On(c.Part(func(result json.RawMessage, err error) {
		if err != nil {
			c.Reply(nil, err)
			return
		}
		for item := range wire.Elements(wire.Get(result, "content")) {
			contents = append(contents, item)
			text, _ := wire.Text(wire.Get(item, "text"))
			q.room = max(q.room-tokens.Count(text), 1)
		}
		q.askEach(c, tools[1:], contents, failed && string(wire.Get(result, "isError")) == "true")
	})))
}

func (q query) ask(c *surface.Call) {
	view := c.View()
	if uri, ok := c.Resource(q.tool); ok {
		readText(c, uri)
		return
	}
	waits := surface.Question{Answer: func() { c.Reply(q.answer(c), nil) }}
	switch {
	case q.tool != "":
		waits.Server = view.ServerOf(q.tool)
		if t := surface.Named(view, q.tool); t != nil { // it may be changing
			waits.Server = t.Server
			break
		}
		waits.Missing, waits.Known = q.tool, func() bool { return surface.Named(c.View(), q.tool) != nil }
	case len(q.words) == 0 || q.server != "":
		waits.Server, _ = view.GuessServer(q.server)
	}
	c.Wait(waits)
}

// manyTools is the number of tools from which a search leaves so much garbage, most of it the first
// one, which parses them, that memory is returned to the system afterwards.
const manyTools = 1000

func (q query) answer(c *surface.Call) json.RawMessage {
	view := c.View()
	if q.tool != "" {
		t := surface.Named(view, q.tool)
		if t == nil {
			return results.Refusal(surface.UnknownTool(c, q.tool))
		}
		c.Show(t)
		switch {
		case q.room > 0 && !q.full:
			return results.Text(view.Texts().Within(t, q.room))
		case q.full:
			return results.Text(view.Texts().Details(t))
		}
		return results.Text(view.Texts().Brief(t))
	}
	server, ok := q.server, true
	if server != "" {
		server, ok = view.GuessServer(server)
	}
	switch {
	case !ok:
		return results.Refusal(surface.UnknownServer(c, q.server))
	case len(q.words) > 0:
		if len(view.Tools()) > manyTools {
			wire.ExpectQuiet()
		}
		found := view.Texts().Found(catalog.Search{Queries: q.words, Server: server, Offset: q.offset, Limit: q.limit, Shown: c.Show})
		return results.Text(strings.Join(append([]string{found}, c.Found(q.words, server)...), "\n\n"))
	}
	page, _ := view.Texts().Page(server, q.offset, q.limit, q.full)
	return results.Text(page)
}

// readText answers with the texts of a resource.
func readText(c *surface.Call, uri string) {
	params := wire.Set([]byte(`{}`), "uri", wire.Quote(uri))
	c.Send("resources/read", params, nil, func(result json.RawMessage, err error) {
		if err != nil {
			c.Reply(surface.Failed(err))
			return
		}
		var texts []string
		for content := range wire.Elements(wire.Get(result, "contents")) {
			text, ok := wire.Text(wire.Get(content, "text"))
			if !ok {
				kind, _ := wire.Text(wire.Get(content, "mimeType"))
				text = fmt.Sprintf("%s is not text, but %s.", uri, cmp.Or(kind, "data of an unknown type"))
			}
			texts = append(texts, text)
		}
		c.Text(texts...)
	})
}

// load answers load_mcp: it loads a server and reports the result.
func load(c *surface.Call) {
	in := surface.ReadArguments(c.Arguments, "mcp_name", "query", "retry")
	name := in.Text("mcp_name")
	if in.Errs == nil && name == "" {
		in.Fail(`"mcp_name" is missing`)
	}
	words, retry := in.Texts("query"), in.Flag("retry")
	checkTexts(in, "query", words)
	if err := in.Err(); err != nil {
		c.InvalidArguments(err)
		return
	}
	if meant, ok := c.View().GuessServer(name); ok {
		name = meant
	}
	if !c.Offered(name, retry) {
		c.Fail(surface.UnknownServer(c, name))
		return
	}
	c.Wait(surface.Question{Server: name, Load: true, Answer: func() {
		if len(words) > 0 {
			c.Text(c.View().Texts().FoundIn(name, words, c.Show))
			return
		}
		result := results.Text(c.View().Texts().Loaded(name))
		if c.ReadsData() {
			result = wire.Set(result, "structuredContent", listing(c, name))
		}
		c.Reply(result, nil)
	}})
}

// listing returns what a server has as data, for a program.
func listing(c *surface.Call, server string) json.RawMessage {
	v := c.View()
	for _, t := range v.ServerTools(server) {
		c.Show(t)
	}
	list := func(key string) json.RawMessage { return wire.Array(v.Entries(key, server)) }
	return fmt.Appendf(nil, `{"mcp_name":%s,"tools":%s,"resources":%s,"resource_templates":%s,"prompts":%s}`,
		wire.Quote(server), list("tools"), list("resources"), list("resourceTemplates"), list("prompts"))
}
