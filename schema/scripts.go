package schema

import (
	"reflect"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Scripts limits scripts.
type Scripts struct {
	// The tools that scripts may call: patterns as in tool_filter, over server/tool.
	Tools []string `json:"tools" default:"[\"@readonly\"]" example:"[\"@readonly\", \"github/*\", \"!github/delete_*\"]"`
	// The most calls of one script.
	Calls int `json:"calls" min:"1" default:"200" example:"1000"`
	// The most calls of one script that are in flight; others wait.
	AtOnce int `json:"at_once" min:"1" default:"16" example:"4"`
	// How long a script may take, without the time in which a person is asked.
	Time time.Duration `json:"time" min:"1ms" default:"5m" example:"30s"`
	// The most characters of a script's result; the model can read on in a longer one. Printed text is cut to as many bytes.
	Output int `json:"output" min:"1024" default:"65536" example:"16384"`
	// Run scripts even if the system cannot limit everything that their process may do.
	BestEffort bool `json:"best_effort" default:"false" example:"true"`
}

// ExposesScripts reports whether hosts may run scripts.
func (c *Config) ExposesScripts() bool { return slices.Contains(c.Expose, ExposeScript) }

// ScriptLimits returns the limits of scripts: the defaults if the config has none.
func (c *Config) ScriptLimits() (s Scripts) {
	if setDefaults(reflect.ValueOf(&s).Elem()); c.Scripts != nil {
		s = *c.Scripts
	}
	return s
}

// setScripts exposes scripts if the config has the key, and shows definitions as types.
func (c *Config) setScripts(layers []*reading) {
	if c.Scripts != nil && !c.ExposesScripts() && layers[0].files.opts.Expose == nil {
		c.Expose = append(slices.Clip(c.Expose), ExposeScript)
	}
	if c.ExposesScripts() && !slices.ContainsFunc(layers, func(r *reading) bool { return r.root.Get("catalog").Get("definitions") != nil }) {
		c.Catalog.Definitions = DefinitionsTypes
	}
}

// checkScripts checks which tools scripts may call.
func (r *report) checkScripts(n *syntax.Node) {
	for i, item := range n.ItemsOf("tools") {
		r.checkPattern(syntax.Item("scripts.tools", i), item, toolglob.CheckOfServers)
	}
}
