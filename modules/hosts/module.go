// Package hosts has the verbs that take servers over from the configs of hosts, and put dynmcp there.
package hosts

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/hosts/importing"
	"github.com/dynmcp/dynmcp/modules/hosts/install"
)

// Module has the verbs import, install and uninstall.
var Module = module.Module{Name: "hosts", Verbs: []cli.Verb{importing.Verb, install.Verb, install.Uninstall}}
