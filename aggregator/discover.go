package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// discoverSurface is the default one: the catalogue as the description of
// discover_tool, and two tools to use what it shows. Each answers once, as text:
// of a structured twin hosts show that alone, without what the text says to do.
func discoverSurface(a *Aggregator, cfg *schema.Config) []tool {
	tools := []tool{
		{name: "discover_tool", call: (*session).discoverTool, definitions: func(v *catalog.View, _ int) []json.RawMessage {
			return []json.RawMessage{define("discover_tool", v.Describe(cfg.Catalog.MaxChars), withRest(discoverInput, cfg), looksOnly)}
		}},
	}
	tools = append(tools, doors(cfg)...)
	if hasLoadTool(cfg) {
		tools = append(tools, tool{name: "load_mcp", call: (*session).loadMCP, definitions: fixed(
			define("load_mcp", loadDescription, loadInput, `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true}`))})
	}
	return append(tools, pinned(cfg)...)
}

// hasLoadTool reports whether there is anything for load_mcp to load.
func hasLoadTool(cfg *schema.Config) bool {
	return slices.ContainsFunc(cfg.Servers, func(s schema.Server) bool { return !s.Disabled && s.Lazy() })
}

// hasLoadTool reports whether a session's host sees load_mcp.
func (s *session) hasLoadTool() bool {
	return s.exposes(schema.ExposeDiscover) && hasLoadTool(s.agg.config())
}

const (
	useDescription  = "Use a tool that was previously discovered with the discover_tool tool."
	loadDescription = "Load a previously deferred MCP server, one that <mcp_servers> in the description of discover_tool lists. Answers with the tools, resources and prompts that it brings."

	discoverInput = `{"type":"object","properties":{` +
		`"tool_name":{"type":"string","description":"Name of a tool. Returns its definition."},` +
		`"full":{"type":"boolean","description":"Nothing is cut: large output schemas, instructions of a server."},` +
		`"query":{"type":"string","description":"Search words. Returns the best-matching tools, the first with its definition."},` +
		`"server":{"type":"string","description":"Name of a server. Returns the list of its tools; with query, searches them only."},` +
		`"limit":{"type":"integer","minimum":1,"description":"Maximum number of entries."},` +
		`"offset":{"type":"integer","minimum":0,"description":"Number of entries to skip."}},"additionalProperties":false}`
	useInput = `{"type":"object","properties":{` +
		`"tool_name":{"type":"string","description":"Name of the tool, as discover_tool shows it."},` +
		`"tool_input":{"type":"object","description":"Arguments of the tool, as its input schema wants them.","additionalProperties":true}},` +
		`"required":["tool_name"]}`
	loadInput = `{"type":"object","properties":{` +
		`"mcp_name":{"type":"string","description":"Name of the server, from <mcp_servers>."},` +
		`"query":{"type":"string","description":"Search words, for a large server. Returns only what matches, the first with its definition."},` +
		`"retry":{"type":"boolean","description":"Try a server that was given up once more, if your user asks for it. At most every 10 minutes."}},` +
		`"required":["mcp_name"],"additionalProperties":false}`
)

// discoverTool answers one tool, the best matches, or a list. It is an inquiry.
func (s *session) discoverTool(r *host.Request, p callParams) {
	if arguments := p.arguments.In(p.all); s.readsOn() != "" && wire.Get(arguments, "result") != nil {
		s.readResult(r, "discover_tool", arguments)
		return
	}
	in, err := readDiscovery(p.arguments.In(p.all))
	if err != nil {
		refuseArguments(r, "discover_tool", err)
		return
	}
	if s.view().Unread() {
		s.agg.work.Answer(r, func() { s.answerDiscovery(r, in) })
		return
	}
	s.answerDiscovery(r, in)
}

func (s *session) answerDiscovery(r *host.Request, in discovery) {
	view := s.view()
	q := inquiry{answer: func() { r.Reply(s.discovered(in), nil) }, asText: true}
	switch {
	case in.tool != "":
		q.server = view.ServerOf(in.tool)
		if t := meant(view, in.tool); t != nil { // it may be changing
			q.server = t.Server
			break
		}
		q.enough = func() bool { return meant(s.view(), in.tool) != nil }
	case in.query == "" || in.server != "":
		q.server, _ = view.ServerMeant(in.server)
	}
	q.ask(s, r)
}

// manyTools is from how many tools on searches make so much garbage, most of it the
// first, which reads them, that the system is given it back afterwards.
const manyTools = 1000

func (s *session) discovered(in discovery) json.RawMessage {
	view := s.view()
	if in.tool != "" {
		t := meant(view, in.tool)
		switch {
		case t == nil:
			return errorResult(s.unknownTool(view, in.tool))
		case in.full:
			s.show(t)
			return catalog.TextResult(view.Details(t))
		}
		s.show(t)
		return catalog.TextResult(view.Brief(t))
	}
	server, ok := in.server, true
	if server != "" {
		server, ok = view.ServerMeant(server)
	}
	if !ok {
		return errorResult(s.unknownServer(view, in.server))
	}
	if in.query != "" {
		if len(view.Tools()) > manyTools {
			wire.ExpectQuiet()
		}
		return catalog.TextResult(view.Found(catalog.Search{Query: in.query, Server: server, Offset: in.offset, Limit: in.limit, Shown: s.show}))
	}
	page, _ := view.Page(server, in.offset, in.limit, in.full)
	return catalog.TextResult(page.Text)
}

// meant returns the tool of a name, or the one that a name spelled otherwise
// can only mean; nil if there is none.
func meant(view *catalog.View, name string) *catalog.Tool {
	if t, ok := view.Tool(name); ok {
		return t
	}
	t, _ := view.Meant(name)
	return t
}

// unlisted returns the upstream of a server that is offered and has not been
// listed yet, in this run or an earlier one, else nil.
func (a *Aggregator) unlisted(view *catalog.View, server string) *lazy.Upstream {
	info, ok := view.Server(server)
	if u := a.set.Get(server); ok && !info.Loaded && !info.Stored && isOffered(u) {
		return u
	}
	return nil
}

// loadMCP loads a server and answers what it brought.
func (s *session) loadMCP(r *host.Request, p callParams) {
	in, err := readLoading(p.arguments.In(p.all))
	if err != nil {
		refuseArguments(r, "load_mcp", err)
		return
	}
	view := s.view()
	name := in.name
	if meant, ok := view.ServerMeant(name); ok {
		name = meant
	}
	u := s.agg.set.Get(name)
	if own := s.ownIfAny(u); in.retry && own != nil {
		own.Readmit()
	}
	if !isOffered(u) {
		r.Reply(errorResult(s.unknownServer(view, name)), nil)
		return
	}
	s.agg.work.Answer(r, func() { s.loadNamed(r, u, in.query) })
}

func (s *session) loadNamed(r *host.Request, u *lazy.Upstream, query string) {
	_, release, err := s.acquire(r, u, (*lazy.Upstream).Load)
	var evicted *lazy.EvictedError
	switch {
	case errors.As(err, &evicted) && evicted.Err == nil: // evicted before
		r.Reply(errorResult(s.unknownServer(s.view(), u.Server.Name)), nil)
		return
	case err != nil:
		s.failOrLogIn(r, nil, err, true, func() { s.loadNamed(r, u, query) })
		return
	}
	defer release()
	s.await(s.agg.ctx, u.Server.Name, nil)
	view := s.view()
	if query != "" {
		r.Reply(catalog.TextResult(view.FoundIn(u.Server.Name, query, s.show)), nil)
		return
	}
	r.Reply(catalog.TextResult(view.Loaded(u.Server.Name)), nil)
}

// unknownTool answers the name of a tool that is not there.
func (s *session) unknownTool(view *catalog.View, name string) string {
	text := view.Unknown(name)
	if view.ServerOf(name) != "" {
		return text
	}
	for _, u := range s.agg.set.All() {
		if leaf, ok := strings.CutPrefix(name, u.Server.Name); ok && strings.HasPrefix(leaf, "/") {
			text += s.givenUp(u)
		}
	}
	return text
}

// unknownServer answers the name of a server that is not offered.
func (s *session) unknownServer(view *catalog.View, name string) string {
	return view.UnknownServer(name) + s.givenUp(s.agg.set.Get(name))
}

// givenUp says why an upstream is not offered any more and how to have it tried
// again, "" of any other.
func (s *session) givenUp(u *lazy.Upstream) string {
	if u == nil {
		return ""
	}
	status := u.Status()
	if status.State != lazy.Evicted {
		return ""
	}
	times := fmt.Sprintf("%d failures", status.Failures)
	if status.Failures == 1 {
		times = "1 failure"
	}
	return fmt.Sprintf("\n%s was given up after %s, because %s.", status.Name, times, s.agg.reason(status.Err)) + readmitted
}

// readmitted says when a server that was given up is offered again. That load_mcp tries it
// once more is for people to know: a model would ask for it without end.
const readmitted = " It is offered again when whoever runs dynmcp reloads its config."

// reason is an upstream's last failure in one line.
func reason(err error) string {
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		err = failure.Cause
	}
	if err == nil {
		return "it does not start"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return transports.Printable([]byte(strings.TrimRight(line, ".")), 200)
}
