// Package credentials lets users keep what servers are called with for them alone: the values of
// ${user:NAME} in the env and the headers of servers. An operator sets them with the verb
// credential, a user of a gateway with his token at /credentials.
package credentials

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

// Module has the verb credential, and the route /credentials of gateways.
var Module = module.Module{
	Name:  "credentials",
	Verbs: []cli.Verb{verb},
	Start: start,
}
