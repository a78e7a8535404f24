package catalog

import (
	"strings"
	"sync"
)

const useTool = "use_tool"

// UseTools are the tools that use_tool is split into, by what the tools may do that each
// calls. It calls those that may do less, too.
var UseTools = [...]string{Destructive: "use_tool_destructive", Write: "use_tool_write", ReadOnly: "use_tool_readonly"}

// A Wording is how the texts of views are for a host.
type Wording struct {
	Split bool // it sees [UseTools] in the place of use_tool
	Told  bool // its models read the instructions: servers may be in these alone
}

// Worded returns the views with the texts for a host. They are the same views for each call.
func (vs *Views) Worded(w Wording) *Views {
	if w == (Wording{}) {
		return vs
	}
	return vs[NoTasks].worded[w]()
}

// wordingsOf returns functions that make the views of other wordings, once each.
func wordingsOf(views *Views) map[Wording]func() *Views {
	all := map[Wording]func() *Views{}
	for _, w := range []Wording{{Split: true}, {Told: true}, {Split: true, Told: true}} {
		all[w] = sync.OnceValue(func() *Views {
			var worded Views
			for i, v := range views {
				if i > 0 && v == views[NoTasks] {
					worded[i] = worded[NoTasks]
					continue
				}
				worded[i] = &View{content: v.content, wording: w}
			}
			return &worded
		})
	}
	return all
}

// useTools has a text that says use_tool name the tools that there are.
func (v Texts) useTools(text string) string {
	if !v.wording.Split {
		return text
	}
	return strings.ReplaceAll(text, useTool, "use_tool_*")
}

// UseTool returns the name of the tool of ours through which discover calls t.
func (v *View) UseTool(t *Tool) string {
	if !v.wording.Split {
		return useTool
	}
	return UseTools[t.Access]
}
