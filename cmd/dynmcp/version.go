package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Show the version and what it was built with",
		Long:  "Show the version of dynmcp, its commit and date, and what it was built with.",
		Example: `  dynmcp version
  dynmcp version --json | jq -r .version`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			about := newBuild()
			if asJSON {
				return terminal.WriteJSON(stdout(cmd), about)
			}
			out := stdout(cmd)
			out.Printf("dynmcp %s\n", about.Version)
			if about.Commit != "" {
				out.Printf("commit %s of %s\n", about.Commit, about.Date)
			}
			out.Printf("%s %s\n", about.Go, about.Platform)
			return out.Err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// A build is what dynmcp knows of its own making.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // "… with changes" where the work tree had some
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339
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
			b.Commit = setting.Value
		case setting.Key == "vcs.time":
			b.Date = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true" && b.Commit != "":
			b.Commit += " with changes"
		}
	}
	return b
}
