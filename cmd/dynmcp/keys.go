//go:build keys

package main

import (
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/packaging/keys"
)

// In a build with the tag keys, dynmcp keys writes the files that are made of the keys of the
// config; see verbs.go.
func init() {
	generator = func(*cobra.Command) *cobra.Command {
		return &cobra.Command{
			Use:    "keys PROJECT",
			Hidden: true,
			Args:   cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				return keys.Write(args[0], modules)
			},
		}
	}
}
