package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Show the version and what it was built with",
		Long:  "Show the version of dynmcp, the revision, and what it was built with.",
		Example: `  dynmcp version
  dynmcp version --json | jq -r .version`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			about := newBuild()
			if asJSON {
				return writeJSON(stdout(cmd), about)
			}
			out := stdout(cmd)
			out.printf("dynmcp %s\n%s %s", about.Version, about.Go, about.Platform)
			if about.Revision != "" {
				out.printf(", revision %s", about.Revision)
			}
			out.printf("\n")
			return out.err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// A build is what dynmcp knows of its own making.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			b.Revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true" && b.Revision != "":
			b.Revision += " with changes"
		}
	}
	return b
}
