package aggregator

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// browserSurface is that of MCP Browser: one tool to query what there is by JSONPath,
// and one for any request.
func browserSurface(a *Aggregator, cfg *schema.Config) []tool {
	return []tool{
		{name: "mcp_discover", call: (*session).mcpDiscover, definitions: func(v *catalog.View, _ int) []json.RawMessage {
			return []json.RawMessage{define("mcp_discover", v.DescribeBrowser(cfg.Catalog.MaxChars), withRest(browseInput, cfg), looksOnly)}
		}},
		{name: "mcp_call", call: (*session).mcpCall, definitions: fixed(define("mcp_call", browseCallDescription, browseCallInput, ""))},
	}
}

const (
	browseInput = `{"type":"object","properties":{` +
		`"jsonpath":{"type":"string","description":"A JSONPath query (RFC 9535), such as $.tools[*].name."}},` +
		`"required":["jsonpath"],"additionalProperties":false}`
	browseCallDescription = `Execute any MCP tool by constructing a JSON-RPC call: {"method": "tools/call", "params": {"name": "server/tool", "arguments": {…}}}. ` +
		`Other methods are resources/read, prompts/get, completion/complete and the lists.`
	browseCallInput = `{"type":"object","properties":{` +
		`"method":{"type":"string","description":"The method, such as tools/call."},` +
		`"params":{"type":"object","description":"The params of the method.","additionalProperties":true}},` +
		`"required":["method"]}`
)

// mcpDiscover answers a query over the catalogue, on a goroutine of its own: that
// takes a while where it is large. It is an inquiry.
func (s *session) mcpDiscover(r *host.Request, p callParams) {
	if arguments := p.arguments.In(p.all); s.readsOn() != "" && wire.Get(arguments, "result") != nil {
		s.readResult(r, "mcp_discover", arguments)
		return
	}
	in := readArguments(p.arguments.In(p.all), "jsonpath")
	query := in.text("jsonpath")
	if in.errs == nil && query == "" {
		in.fail(`"jsonpath" is missing, such as $.tools[*].name`)
	}
	if err := in.err(); err != nil {
		refuseArguments(r, "mcp_discover", err)
		return
	}
	browse := func() {
		answer, note, err := s.view().Browse(query, s.agg.config().Catalog.MaxListBytes, s.show)
		if err != nil {
			refuseArguments(r, "mcp_discover", err)
			return
		}
		r.Reply(catalog.TextResult(said(string(answer), note)...), nil)
	}
	inquiry{server: s.view().ServerFor(""), asText: true, answer: func() { s.agg.work.Answer(r, browse) }}.ask(s, r)
}

// mcpCall makes the request that its arguments are. What a tool answers is the answer;
// the result of any other method is that as text, since only a tool's result can be
// that of a tool.
func (s *session) mcpCall(r *host.Request, p callParams) {
	in, err := readInner(p.arguments.In(p.all))
	if err != nil {
		refuseArguments(r, "mcp_call", err)
		return
	}
	inner := r.Inner(in.method, innerParams(in.params, p.all), func(result json.RawMessage, err error) {
		switch {
		case err != nil:
			failInner(r, err)
		case in.method == "tools/call" || ask.NeedsInput(nil, result):
			r.Reply(result, nil)
		default:
			note := ""
			if strings.HasSuffix(in.method, "/list") && wire.Get(in.params, "server") == nil {
				note = s.view().Starting()
			}
			r.Reply(catalog.TextResult(said(string(result), note)...), nil)
		}
	})
	s.serveInner(inner, catalog.Browser)
}

// An innerRequest is a request that arguments describe.
type innerRequest struct {
	method string
	params json.RawMessage // an object, or nil
}

// maxNested is how often a call of mcp_call may be inside another.
const maxNested = 8

// readInner reads a request from the arguments of mcp_call. One that calls mcp_call
// itself, as MCP Browser has it, is the request that this one describes.
func readInner(arguments json.RawMessage) (inner innerRequest, err error) {
	for range maxNested {
		in := readArguments(arguments, "method", "params", "jsonrpc", "id")
		inner.method = in.text("method")
		switch {
		case in.errs != nil:
		case inner.method == "":
			in.fail(`"method" is missing: {"method": "tools/call", "params": {"name": "server/tool", "arguments": {…}}}`)
		default:
			inner.params = in.object("params")
		}
		if in.errs != nil || inner.method != "tools/call" || !wire.EqualString(wire.Get(inner.params, "name"), "mcp_call") {
			return inner, in.err()
		}
		arguments = wire.Get(inner.params, "arguments")
	}
	return inner, fmt.Errorf("mcp_call is inside itself more than %d times", maxNested)
}
