package lock

import (
	"cmp"

	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/schema"
)

// Keys are the keys of an entry.
type Keys struct {
	// Whether tools are compared with dynmcp.lock: warn reports, to the model and in the log, those that differ from the version that was first listed or approved; block hides those that dynmcp approve has not approved; off compares nothing. See docs/trust.md.
	Pins string `json:"pins" group:"limit" enum:"off,warn,block" default:"off" example:"warn"`
}

// Section is the section of the keys.
var Section = schema.ServerSectionOf[Keys]("pins", "")

// Approval implements approval.Keys.
func (k Keys) Approval() string { return cmp.Or(k.Pins, approval.Off) }
