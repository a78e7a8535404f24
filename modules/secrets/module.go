// Package secrets has the references to secrets beside those to files: ${keyring:NAME} is a secret in the
// keyring of the system, which the verb secret keeps, and ${cmd:COMMAND} is what a command prints.
package secrets

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/module"
)

// Module has the schemes keyring and cmd, and the verb secret.
var Module = module.Module{
	Name:    "secrets",
	Secrets: []secretref.Scheme{stored{}, printed{}},
	Verbs:   []cli.Verb{verb},
}
