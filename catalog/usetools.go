package catalog

import "strings"

const useTool = "use_tool"

// UseTools are the tools that use_tool is split into, by what the tools may do that each
// calls. It calls those that may do less, too.
var UseTools = [...]string{Destructive: "use_tool_destructive", Write: "use_tool_write", ReadOnly: "use_tool_readonly"}

// useTools has a text that says use_tool name the tools that there are.
func (v Texts) useTools(text string) string {
	if len(v.parts) == 0 {
		return text
	}
	return v.parts[0].useTools(text)
}

func (p *serverView) useTools(text string) string {
	if !p.server.Split {
		return text
	}
	return strings.ReplaceAll(text, useTool, "use_tool_*")
}
