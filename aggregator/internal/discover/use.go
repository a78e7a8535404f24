package discover

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/directname"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

const (
	useDescription = "Use a tool that was previously discovered with the discover_tool tool"
	useInput       = `{"type":"object","properties":{` +
		`"tool_name":{"type":"string"},` +
		`"tool_input":{"type":"object","description":"By the tool's input schema.","additionalProperties":true}},` +
		`"required":["tool_name"]}`
)

var useArguments = surface.CallArguments{Tool: "tool_name", Input: "tool_input", Example: `{"tool_name": "server/tool", "tool_input": {…}}`}

// useTools returns use_tool, or the three tools that it is split into for hosts that ask their
// user about each tool by name: each of them calls only tools that may do no more than it says.
// The description of the first lists the servers that do not fit that of discover_tool.
func useTools(cfg *schema.Config) []surface.Tool {
	if cfg.UseTool != schema.UseToolSplit {
		return []surface.Tool{useTool("use_tool", toolglob.Destructive, ".", "", cfg)}
	}
	return []surface.Tool{
		useTool(catalog.UseTools[toolglob.ReadOnly], toolglob.ReadOnly, " and only reads: discover_tool shows through which of three each is called.", `{"title":"Call a tool that only reads","readOnlyHint":true}`, cfg),
		useTool(catalog.UseTools[toolglob.Write], toolglob.Write, " and changes things, but destroys nothing.", `{"title":"Call a tool that changes things","readOnlyHint":false,"destructiveHint":false}`, cfg),
		useTool(catalog.UseTools[toolglob.Destructive], toolglob.Destructive, ", whatever it may do: those that do not say count as destructive.", `{"title":"Call a tool that may destroy things","readOnlyHint":false,"destructiveHint":true}`, cfg),
	}
}

// usedBy returns the name of the tool through which t is called.
func usedBy(cfg *schema.Config, t *catalog.Tool) string {
	if cfg.UseTool != schema.UseToolSplit {
		return "use_tool"
	}
	return catalog.UseTools[t.Access]
}

func useTool(name string, most toolglob.Access, says, annotations string, cfg *schema.Config) surface.Tool {
	return surface.Tool{
		Name: name,
		Definitions: func(v *catalog.View, _ int) []json.RawMessage {
			description := useDescription + says
			if name == v.UseTool(toolglob.ReadOnly) {
				description = v.Texts().DescribeRest(description, cfg.Catalog.MaxChars)
			}
			return []json.RawMessage{surface.Define(name, description, useInput, annotations)}
		},
		Read: useArguments.Read,
		Target: &surface.Target{
			Surface: schema.ExposeDiscover, Way: way{name: name, most: most}, ShowsInput: true,
		},
	}
}

// A way calls tools by use_tool or a part of it, which may do no more than most.
type way struct {
	surface.AnyTool
	name string
	most toolglob.Access
}

func (w way) Reject(t *catalog.Tool) string {
	if t.Access >= w.most {
		return ""
	}
	return fmt.Sprintf(`%s may do more than %s lets through: call it through %s {"tool_name": %s, "tool_input": {…}}`,
		t.Name, w.name, catalog.UseTools[t.Access], wire.Quote(t.Name))
}

// Find returns the tool with exactly this name: hosts, and users' rules in them, decide by these names,
// so that another spelling must not call it.
func (way) Find(v *catalog.View, name string) (t *catalog.Tool, server string) {
	if t, ok := v.Tool(name); ok {
		return t, ""
	}
	return nil, v.ServerFor(name)
}

// maxSchema is the largest input schema, in bytes, that is shown with an error.
const maxSchema = 8 << 10

func (way) ShowInput(t *catalog.Tool) string {
	switch {
	case t.InputSchema == nil:
		return ""
	case len(t.InputSchema) > maxSchema:
		return fmt.Sprintf(`The input schema of %s is long: discover_tool {"tool_name": %s} shows it.`, t.Name, wire.Quote(t.Name))
	}
	return fmt.Sprintf("Input schema of %s, which tool_input has to fit:\n%s", t.Name, t.VisibleInput())
}

// pinned returns the tools of servers that are listed directly. If the direct surface is on, all tools
// are, and it returns nil.
func pinned(cfg *schema.Config) []surface.Tool {
	if slices.Contains(cfg.Expose, schema.ExposeDirect) {
		return nil
	}
	var tools []surface.Tool
	for _, pin := range cfg.Pin {
		server, leaf, _ := strings.Cut(pin, "/")
		tools = append(tools, surface.Tool{
			Name: directname.Of(server, leaf),
			Definitions: func(v *catalog.View, longest int) []json.RawMessage {
				if t, ok := v.Tool(pin); ok {
					return []json.RawMessage{v.DirectDefinition(t, longest)}
				}
				return nil // not yet, or there is no such tool
			},
			Read:   func(json.RawMessage, *wire.Outline) (string, json.RawMessage, error) { return pin, nil, nil },
			Target: &surface.Target{Surface: schema.ExposeDiscover, Way: way{}, Verbatim: true},
		})
	}
	return tools
}

// PinWarnings reports the pins for which a listed server has no tool.
func PinWarnings(cfg *schema.Config, view *catalog.View) []string {
	var all []string
	for _, pin := range cfg.Pin {
		server, _, _ := strings.Cut(pin, "/")
		info, known := view.Server(server)
		if _, ok := view.Tool(pin); known && info.Loaded && !ok {
			all = append(all, fmt.Sprintf("pin: %s has no tool %s that hosts may see", server, wire.Quote(pin)))
		}
	}
	return all
}
