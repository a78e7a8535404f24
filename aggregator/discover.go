package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/schema"
	"dynmcp/transports/host"
)

// discoverSurface is the default one: the catalogue as the description of
// discover_tool, and two tools to use what it shows.
func discoverSurface(a *Aggregator, cfg *schema.Config) []tool {
	tools := []tool{
		{name: "discover_tool", call: a.discoverTool, definitions: func(v *catalog.View) []json.RawMessage {
			return []json.RawMessage{define("discover_tool", v.Describe(maxChars(cfg)), discoverInput, `{"readOnlyHint":true,"openWorldHint":false}`, alwaysLoad)}
		}},
		{name: "use_tool", call: a.useTool, definitions: fixed(
			define("use_tool", useDescription, useInput, "", `{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":500000}`))},
	}
	if slices.ContainsFunc(cfg.Servers, func(s schema.Server) bool { return !s.Disabled && s.Lazy() }) {
		tools = append(tools, tool{name: "load_mcp", call: a.loadMCP, definitions: fixed(
			define("load_mcp", loadDescription, loadInput, `{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true}`, alwaysLoad))})
	}
	return tools
}

const (
	useDescription  = "Use a tool that was previously discovered with the discover_tool tool."
	loadDescription = "Load a previously deferred MCP server, one that <mcp_servers> in the description of discover_tool lists. Answers with the tools, resources and prompts that it brings."

	discoverInput = `{"type":"object","properties":{` +
		`"tool_name":{"type":"string","description":"A tool, as <tools> names it: answers its full definition."},` +
		`"query":{"type":"string","description":"Words to search all loaded tools for: answers the best matches."},` +
		`"server":{"type":"string","description":"A server: answers the list of its tools."},` +
		`"limit":{"type":"integer","minimum":1,"description":"The most entries to answer."},` +
		`"offset":{"type":"integer","minimum":0,"description":"How many entries of a list to skip."}}}`
	useInput = `{"type":"object","properties":{` +
		`"tool_name":{"type":"string","description":"The tool, as discover_tool names it."},` +
		`"tool_input":{"type":"object","description":"The tool's arguments, as its input schema wants them.","additionalProperties":true}},` +
		`"required":["tool_name"]}`
	loadInput = `{"type":"object","properties":{` +
		`"mcp_name":{"type":"string","description":"The server, as <mcp_servers> names it."}},` +
		`"required":["mcp_name"]}`

	// alwaysLoad keeps hosts that search for tools from hiding ours.
	alwaysLoad = `{"anthropic/alwaysLoad":true}`
)

// discoverTool answers one tool, the best matches, or a list.
func (a *Aggregator) discoverTool(s *session, r *host.Request, p callParams) {
	var in struct {
		ToolName string `json:"tool_name"`
		Query    string `json:"query"`
		Server   string `json:"server"`
		Limit    int    `json:"limit"`
		Offset   int    `json:"offset"`
	}
	if err := decode(p.arguments.In(p.all), &in); err != nil {
		r.Reply(errorResult("discover_tool: "+err.Error()), nil)
		return
	}
	r.Reply(discovered(a.viewOf(s), in.ToolName, in.Query, in.Server, in.Offset, in.Limit), nil)
}

func discovered(v *catalog.View, name, query, server string, offset, limit int) json.RawMessage {
	switch {
	case name != "":
		t, ok := v.Tool(name)
		if !ok {
			return errorResult(v.Unknown(name))
		}
		return textResult(v.Details(t), v.Definition(t))
	case query != "":
		page := v.Found(query, limit)
		return textResult(page.Text, page.Structured)
	}
	page, ok := v.Page(server, offset, limit)
	if !ok {
		return errorResult(v.UnknownServer(server))
	}
	return textResult(page.Text, page.Structured)
}

// decode reads arguments; a wrong type is named with its member.
func decode(arguments json.RawMessage, into any) error {
	if len(arguments) == 0 || string(arguments) == "null" {
		return nil
	}
	err := json.Unmarshal(arguments, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("the arguments must be an object, not %s", wire.TypeName(arguments))
		}
		return fmt.Errorf("%q must be a %s, not a %s", wrong.Field, strings.TrimPrefix(wrong.Type.String(), "*"), wrong.Value)
	}
	return err
}

// useTool calls an upstream's tool, after its server was loaded if need be.
func (a *Aggregator) useTool(s *session, r *host.Request, p callParams) {
	name, input, err := useArguments(p.arguments.In(p.all))
	if err != nil {
		r.Reply(errorResult("use_tool: "+err.Error()), nil)
		return
	}
	view := a.viewOf(s)
	if t, ok := view.Tool(name); ok {
		a.callUpstream(s, r, t, p.with(t.Upstream, input), true)
		return
	}
	if u := a.unlisted(view, name); u != nil {
		a.spawnFor(r, func() { a.loadAndUse(s, r, u, p, name, input) })
		return
	}
	r.Reply(errorResult(view.Unknown(name)), nil)
}

// useArguments reads the arguments of use_tool. The input is an object, or a
// string that holds one: some hosts write it so.
func useArguments(arguments json.RawMessage) (name string, input json.RawMessage, err error) {
	if len(arguments) == 0 {
		return "", nil, errors.New(`"tool_name" is missing`)
	}
	rawName, input, err := wire.GetStrict(arguments, "tool_name", "tool_input")
	if err != nil {
		return "", nil, err
	}
	name, ok := wire.Text(rawName)
	switch {
	case rawName == nil || ok && name == "":
		return "", nil, errors.New(`"tool_name" is missing`)
	case !ok:
		return "", nil, fmt.Errorf(`"tool_name" must be a string, not %s`, wire.TypeName(rawName))
	}
	if text, ok := wire.Text(input); ok {
		input = wire.JoinLines([]byte(strings.TrimSpace(text)))
		if !wire.Valid(input) {
			return "", nil, errors.New(`"tool_input" is a string that holds no JSON; pass the tool's arguments as an object`)
		}
	}
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage(`{}`)
	}
	if !wire.IsObject(input) {
		return "", nil, fmt.Errorf(`"tool_input" must be an object with the tool's arguments, not %s`, wire.TypeName(input))
	}
	return name, input, nil
}

// unlisted returns the upstream that a name not in the catalogue may belong
// to: one that has not been listed yet. In single-wrap mode there is but one.
func (a *Aggregator) unlisted(view *catalog.View, name string) *lazy.Upstream {
	u := a.single()
	if u == nil {
		server, _, ok := strings.Cut(name, "/")
		if !ok {
			return nil
		}
		u = a.set.Get(server)
	}
	if !isOffered(u) {
		return nil
	}
	if info, ok := view.Server(u.Server.Name); !ok || info.Loaded {
		return nil
	}
	return u
}

func (a *Aggregator) loadAndUse(s *session, r *host.Request, u *lazy.Upstream, p callParams, name string, input json.RawMessage) {
	_, release, err := a.acquire(r, u, u.Acquire)
	if err != nil {
		a.fail(r, err, true)
		return
	}
	defer release()
	view := a.viewOf(s)
	t, ok := view.Tool(name)
	if !ok {
		r.Reply(errorResult(view.Unknown(name)), nil)
		return
	}
	a.callUpstream(s, r, t, p.with(t.Upstream, input), true)
}

// loadMCP loads a server and answers what it brought.
func (a *Aggregator) loadMCP(s *session, r *host.Request, p callParams) {
	var in struct {
		Name string `json:"mcp_name"`
	}
	if err := decode(p.arguments.In(p.all), &in); err != nil {
		r.Reply(errorResult("load_mcp: "+err.Error()), nil)
		return
	}
	if in.Name == "" {
		r.Reply(errorResult(`load_mcp: "mcp_name" is missing`), nil)
		return
	}
	u := a.set.Get(in.Name)
	if !isOffered(u) {
		r.Reply(errorResult(a.catalog.View().UnknownServer(in.Name)), nil)
		return
	}
	a.spawnFor(r, func() { a.loadNamed(s, r, u) })
}

func (a *Aggregator) loadNamed(s *session, r *host.Request, u *lazy.Upstream) {
	_, release, err := a.acquire(r, u, u.Load)
	var evicted *lazy.EvictedError
	switch {
	case errors.As(err, &evicted) && evicted.Err == nil: // evicted before
		r.Reply(errorResult(a.catalog.View().UnknownServer(u.Server.Name)), nil)
		return
	case err != nil:
		a.fail(r, err, true)
		return
	}
	defer release()
	a.awaitRefresh(a.ctx)
	structured, text := a.viewOf(s).Loaded(u.Server.Name)
	r.Reply(textResult(text, structured), nil)
}
