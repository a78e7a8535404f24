// Package registry finds servers in registries, adds them, and finds newer versions of packages.
package registry

import (
	_ "embed"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/registry/adding"
	"github.com/dynmcp/dynmcp/modules/registry/api"
	"github.com/dynmcp/dynmcp/modules/registry/update"
	"github.com/dynmcp/dynmcp/schema"
)

//go:embed page.js
var page string

// Module has the verbs search, outdated and update, and makes add know the names of registries.
var Module = module.Module{
	Name:  "registry",
	Keys:  []schema.Section{schema.ServerSectionOf[api.Keys]("registry", "")},
	Verbs: []cli.Verb{adding.Search, adding.Outdated, update.Update},
	Adder: adding.New,
	Tabs:  []module.Tab{{Script: page}},
}
