// Package module says what a feature of dynmcp can add to it. It has types and nothing else.
//
// A feature is a folder below modules with a [Module], and a line of the table in
// cmd/dynmcp/modules.go. Without its line the program is built without the feature. The core
// imports no module, and a module imports no other.
package module

import "github.com/dynmcp/dynmcp/internal/cli"

// A Module is a feature that the core does not know. A zero field is what the feature lacks.
type Module struct {
	// Name is the name of its folder. It names the module to people.
	Name string
	// Verbs are its commands.
	Verbs []cli.Verb
}
