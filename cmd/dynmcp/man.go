//go:build man

package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/dynmcp/dynmcp/internal/cli"
)

// In a build with the tag man, dynmcp man writes the man pages for packaging/extras. Other
// builds do not link the generator. SOURCE_DATE_EPOCH is the date of the pages.
func init() {
	generator = func(root *cobra.Command) *cobra.Command {
		return &cobra.Command{
			Use:    "man DIRECTORY",
			Hidden: true,
			Args:   cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				if err := os.MkdirAll(args[0], 0o777); err != nil {
					return err
				}
				root.DisableAutoGenTag = true
				header := &doc.GenManHeader{Title: "DYNMCP", Section: "1", Source: "dynmcp " + cli.Version, Manual: "dynmcp"}
				return doc.GenManTree(root, header, args[0])
			},
		}
	}
}
