package catalog

import (
	"cmp"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/schema"
)

// Override changes what the tool shows of itself, and its limits.
func (t *Tool) Override(o schema.ToolOverride) {
	if o.Description != "" {
		t.Description, t.overridden = o.Description, true
	}
	if line := display.FirstLine(o.Summary, o.Description); line != "" {
		t.Summary = line
	}
	if o.ExampleArgs != nil {
		t.ExampleArgs = o.ExampleArgs
	}
	if o.MaxOutputChars != nil {
		t.MaxOutputChars = *o.MaxOutputChars
	}
	if o.Timeout != nil {
		t.Timeout = o.Timeout
	}
	t.RenderMode = cmp.Or(o.RenderMode, t.RenderMode)
}

// Shaped reports whether results of the tool may reach hosts otherwise than the server
// sent them.
func (t *Tool) Shaped() bool {
	return t.RenderMode != schema.RenderRaw && (t.MaxOutputChars > 0 || t.RenderMode == schema.RenderText)
}
