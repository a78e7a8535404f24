// Package activity records the calls of a run. Its verbs log and stats show the record.
package activity

import (
	_ "embed"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

//go:embed page.js
var page string

// Module has the key activity, which records the calls of a run or does not, and the verbs log and stats.
var Module = module.Module{
	Name:  "activity",
	Keys:  []schema.Section{schema.SectionOf[record.Keys]("activity")},
	Verbs: []cli.Verb{logVerb, statsVerb},
	Start: start,
	Tabs:  []module.Tab{{Name: "calls", Script: page}},
}
