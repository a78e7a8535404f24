// Package tools is the surface of MCP Browser: one tool to query the catalogue by JSONPath, and one
// for any request.
package tools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Surface is the surface browser.
var Surface = surface.Kind{Name: schema.ExposeBrowser, Start: surface.Plain(newSurface)}

func newSurface(cfg *schema.Config) surface.Surface {
	s := surface.Surface{
		Tools: []surface.Tool{
			{
				Name: "mcp_discover",
				Definitions: func(v *catalog.View, _ int) []json.RawMessage {
					return []json.RawMessage{surface.Define("mcp_discover", describe(v, cfg.Catalog.MaxChars), surface.WithReadingOn(discoverInput, cfg), surface.ReadOnly)}
				},
				Answer: surface.ReadingOn(cfg, func(c *surface.Call) { discover(c, cfg.Catalog.MaxListBytes) }),
			},
			{Name: "mcp_call", Definitions: surface.Fixed("mcp_call", callDescription, callInput, ""), Answer: call},
		},
		Texts:     []surface.Texts{texts{}},
		AnyMethod: true,
	}
	if results.Limits(cfg) {
		s.ReadsOn = "mcp_discover"
	}
	return s
}

const (
	discoverInput = `{"type":"object","properties":{` +
		`"jsonpath":{"type":"string","description":"A JSONPath query (RFC 9535), such as $.tools[*].name."}},` +
		`"required":["jsonpath"],"additionalProperties":false}`
	callDescription = `Execute any MCP tool by constructing a JSON-RPC call: {"method": "tools/call", "params": {"name": "server/tool", "arguments": {…}}}. ` +
		`Other methods are resources/read, prompts/get, completion/complete and the lists.`
	callInput = `{"type":"object","properties":{` +
		`"method":{"type":"string","description":"The method, such as tools/call."},` +
		`"params":{"type":"object","description":"The params of the method.","additionalProperties":true}},` +
		`"required":["method"]}`
)

// discover answers a query over the catalogue, on a goroutine of its own, because a query over a large
// one takes a while.
func discover(c *surface.Call, maxBytes int) {
	in := surface.ReadArguments(c.Arguments, "jsonpath")
	query := in.Text("jsonpath")
	if in.Errs == nil && query == "" {
		in.Fail(`"jsonpath" is missing, such as $.tools[*].name`)
	}
	if err := in.Err(); err != nil {
		c.InvalidArguments(err)
		return
	}
	c.Wait(surface.Question{Server: c.View().ServerFor(""), Answer: func() {
		c.Go(func() {
			answer, note, err := browse(c.View(), query, maxBytes, c.Show)
			if err != nil {
				c.InvalidArguments(err)
				return
			}
			c.Text(string(answer), note)
		})
	}})
}

type texts struct{ surface.NoTexts }

func (texts) HowToCall(t *catalog.Tool) string {
	return fmt.Sprintf(`mcp_call: {"method": "tools/call", "params": {"name": %s, "arguments": {…}}}`, wire.Quote(t.Name))
}

func (texts) HowToRead(tool string) string {
	return fmt.Sprintf(`mcp_discover {"jsonpath": %s}`, wire.Quote("$.tools[?(@.name=='"+tool+"')]"))
}

// Target defines how mcp_call calls tools, including those of its own surface.
var Target = &surface.Target{Surface: schema.ExposeBrowser, Way: way{}, Nested: true}

type way struct{ surface.AnyTool }

func (way) Unknown(v *catalog.View, name string) string { return v.Texts().UnknownTool(hints, name) }

// call makes the request in its arguments. The result of a tool is returned unchanged; the result of any
// other method is returned as text, since only a tool's result can be the result of a tool.
func call(c *surface.Call) {
	method, params, err := ReadRequest(c.Arguments)
	if err != nil {
		c.InvalidArguments(err)
		return
	}
	ofAll := strings.HasSuffix(method, "/list") && wire.Get(params, "server") == nil
	c.Send(method, params, Target, func(result json.RawMessage, err error) {
		switch {
		case err != nil:
			c.Reply(surface.Failed(err))
		case method == "tools/call" || c.Asks(result):
			c.Reply(result, nil)
		default:
			note := ""
			if ofAll {
				note = c.View().Texts().Unlisted()
			}
			c.Text(string(result), note)
		}
	})
}

// maxNested is how many calls of mcp_call may be nested.
const maxNested = 8

// ReadRequest reads a request from the arguments of mcp_call; params are an object or nil. A call of
// mcp_call itself, as in MCP Browser, is replaced with the request that it contains.
func ReadRequest(arguments json.RawMessage) (method string, params json.RawMessage, err error) {
	for range maxNested {
		in := surface.ReadArguments(arguments, "method", "params", "jsonrpc", "id")
		method, params = in.Text("method"), nil
		switch {
		case in.Errs != nil:
		case method == "":
			in.Fail(`"method" is missing: {"method": "tools/call", "params": {"name": "server/tool", "arguments": {…}}}`)
		default:
			params = in.Object("params")
		}
		if in.Errs != nil || method != "tools/call" || !wire.EqualString(wire.Get(params, "name"), "mcp_call") {
			return method, params, in.Err()
		}
		arguments = wire.Get(params, "arguments")
	}
	return "", nil, fmt.Errorf("mcp_call is nested more than %d times", maxNested)
}
