package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// A door is use_tool, or one of the three that it is split into for hosts that ask
// their user by the tool's name.
type door struct {
	name string
	lets catalog.Access // tools that may do no more than this
}

// doors are the tools through which discover calls.
func doors(cfg *schema.Config) []tool {
	through := func(d door, description, annotations string) tool {
		return tool{name: d.name, definitions: fixed(define(d.name, description, useInput, annotations)),
			means: func(p callParams, outline *wire.Outline) (toolCall, error) {
				name, input, err := innerArguments(p.arguments.In(p.all), outline, useNames)
				return toolCall{params: p, name: name, input: input, through: d}, err
			}}
	}
	if cfg.UseTool != schema.UseToolSplit {
		return []tool{through(door{"use_tool", catalog.Destructive}, useDescription, "")}
	}
	const say = "Use a tool that was previously discovered with the discover_tool tool"
	return []tool{
		through(door{catalog.Doors[catalog.ReadOnly], catalog.ReadOnly}, say+" and only reads: discover_tool shows through which of three each is called.", `{"readOnlyHint":true}`),
		through(door{catalog.Doors[catalog.Write], catalog.Write}, say+" and changes things, but destroys nothing.", `{"readOnlyHint":false,"destructiveHint":false}`),
		through(door{catalog.Doors[catalog.Destructive], catalog.Destructive}, say+", whatever it may do: those that do not say count as destructive.", `{"readOnlyHint":false,"destructiveHint":true}`),
	}
}

// pinned are the tools of servers that discover shows as themselves. Where direct is on,
// all are.
func pinned(cfg *schema.Config) []tool {
	if slices.Contains(cfg.Expose, schema.ExposeDirect) {
		return nil
	}
	var tools []tool
	for _, pin := range cfg.Pin {
		server, leaf, _ := strings.Cut(pin, "/")
		tools = append(tools, tool{name: catalog.DirectName(server, leaf), definitions: func(v *catalog.View, longest int) []json.RawMessage {
			if t, ok := v.Tool(pin); ok {
				return []json.RawMessage{v.DirectDefinition(t, longest)}
			}
			return nil // not yet, or there is no such tool
		}, means: func(p callParams, _ *wire.Outline) (toolCall, error) {
			return toolCall{params: p, name: pin, asItself: true}, nil
		}})
	}
	return tools
}

// pinWarnings names the pins for which a listed server has no tool.
func pinWarnings(cfg *schema.Config, view *catalog.View) []string {
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
