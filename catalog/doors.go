package catalog

import "strings"

const useTool = "use_tool"

// Doors are the tools through which tools are called where use_tool is split, by what
// those may do. A door lets through what may do less, too.
var Doors = [...]string{Destructive: "use_tool_destructive", Write: "use_tool_write", ReadOnly: "use_tool_readonly"}

// doors has a text name the doors, of which it says use_tool, as they are.
func (v *View) doors(text string) string {
	if len(v.parts) == 0 {
		return text
	}
	return v.parts[0].doors(text)
}

func (p *part) doors(text string) string {
	if !p.server.Split {
		return text
	}
	return strings.ReplaceAll(text, useTool, "use_tool_*")
}

// DirectName is the name of a server's tool, or of its alias, on the direct surface.
func DirectName(server, leaf string) string { return directName(Server{Name: server}, leaf) }
