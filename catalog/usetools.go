package catalog

import (
	"strings"
	"sync"
)

const useTool = "use_tool"

// UseTools are the tools that use_tool is split into, by what the tools may do that each
// calls. It calls those that may do less, too.
var UseTools = [...]string{Destructive: "use_tool_destructive", Write: "use_tool_write", ReadOnly: "use_tool_readonly"}

// Split returns the views with the texts for hosts that see [UseTools]. They are the same
// views for each call.
func (vs *Views) Split() *Views { return vs[NoTasks].worded() }

// splitOf returns a function that makes these views, once.
func splitOf(views *Views) func() *Views {
	return sync.OnceValue(func() *Views {
		var split Views
		for i, v := range views {
			if i > 0 && v == views[NoTasks] {
				split[i] = split[NoTasks]
				continue
			}
			split[i] = &View{content: v.content, split: true}
		}
		return &split
	})
}

// useTools has a text that says use_tool name the tools that there are.
func (v Texts) useTools(text string) string {
	if !v.split {
		return text
	}
	return strings.ReplaceAll(text, useTool, "use_tool_*")
}

// UseTool returns the name of the tool of ours through which discover calls what may do so much.
func (v *View) UseTool(may Access) string {
	if !v.split {
		return useTool
	}
	return UseTools[may]
}
