// Package proxy has the surface proxy, one tool that lists, shows and uses all that servers have.
package proxy

import (
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/proxy/tools"
)

// Module has no key: expose names its surface.
var Module = module.Module{Name: "proxy", Surfaces: []surface.Kind{tools.Surface}}
