package apps

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/catalog"
)

// sealed is the purpose of tokens in views.
const sealed = "view"

const surfaceName = "app" // of calls by views, and of tools with a view

// Call implements extension.Caller. A view calls by its token. A tool with a view is called by the
// name in the list, and what one server with a view has also by that server's own name.
func (p *part) Call(h extension.Host, tool string, arguments json.RawMessage) *extension.Call {
	if !p.shows(h) {
		return nil
	}
	switch tool {
	case viewCall:
		return byToken(h, arguments)
	case useApp:
		return byUseApp(h, arguments)
	}
	v := h.View()
	if t, ok := v.Direct(tool); ok {
		switch {
		case t.OnlyViews && !h.IsSingleServer():
			return refuse("only the views of %s call it, with their tokens", t.Server)
		case h.ListsDirectly() || !t.OnlyViews && !t.HasView && !h.IsSingleServer():
			return nil
		case h.IsSingleServer() && !hasViews(v, t.Server):
			return nil
		}
		return &extension.Call{Server: t.Server, Tool: t.Upstream, Surface: surfaceName, ByView: t.OnlyViews}
	}
	return bare(v, tool)
}

// bare returns the call of a tool by its server's own name, if one server with views has it.
func bare(v *catalog.View, tool string) *extension.Call {
	var of []*catalog.Tool
	for _, server := range v.Servers() {
		if t := v.Upstream(server.Name, tool); t != nil && hasViews(v, server.Name) {
			of = append(of, t)
		}
	}
	switch {
	case len(of) == 0:
		return nil
	case len(of) > 1:
		var servers []string
		for _, t := range of {
			servers = append(servers, t.Server)
		}
		return refuse("it is a tool of %s, and nothing says which is meant", strings.Join(servers, " and of "))
	case of[0].OnlyViews:
		return refuse("only the views of %s call it, with their tokens", of[0].Server)
	}
	return &extension.Call{Server: of[0].Server, Tool: tool, Surface: surfaceName}
}

func refuse(format string, args ...any) *extension.Call {
	return &extension.Call{Refusal: fmt.Errorf(format, args...)}
}

// arguments are those of view_call and use_app.
type arguments struct {
	View  string          `json:"view"`
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
}

func readArguments(raw json.RawMessage) (in arguments, err error) {
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, err
	}
	if in.Tool == "" {
		return in, errors.New(`"tool_name" is missing`)
	}
	if len(in.Input) == 0 || string(in.Input) == "null" {
		in.Input = json.RawMessage(`{}`)
	}
	if in.Input[0] != '{' {
		return in, errors.New(`"tool_input" must be an object`)
	}
	return in, nil
}

// byToken returns the call of a view: the token says whose view it is, and in which session it was read.
func byToken(h extension.Host, raw json.RawMessage) *extension.Call {
	in, err := readArguments(raw)
	if err != nil {
		return refuse("%w", err)
	}
	server, ok := h.Open(sealed, in.View)
	if !ok {
		return refuse("the view is not one of this session: read it again")
	}
	if _, ok := h.View().Server(server); !ok {
		return refuse("the server of the view, %s, is not there any more", server)
	}
	return &extension.Call{Server: server, Tool: in.Tool, Input: in.Input, Surface: surfaceName, ByView: true}
}

// byUseApp returns the call of use_app.
func byUseApp(h extension.Host, raw json.RawMessage) *extension.Call {
	in, err := readArguments(raw)
	if err != nil {
		return refuse("%w", err)
	}
	t, ok := h.View().Called(in.Tool)
	if !ok {
		return refuse("no server has the tool %q: discover_tool finds tools", in.Tool)
	}
	return &extension.Call{Server: t.Server, Tool: t.Upstream, Input: in.Input, Surface: useApp}
}
