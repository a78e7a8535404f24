package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

var versionVerb = cli.Verb{
	Use:   "version [flags]",
	Group: cli.Develop,
	Short: "Show the version and build information",
	Long:  "Show the version of dynmcp, its commit and date, and what it was built with.",
	Example: `  dynmcp version
  dynmcp version --json | jq -r .version`,
	New: func(cmd *cobra.Command) cli.Run {
		asJSON := cmd.Flags().Bool("json", false, "print a JSON object")
		return func(cmd *cobra.Command, _ []string) error {
			about := newBuild()
			if *asJSON {
				return terminal.WriteJSON(cli.Stdout(cmd), about)
			}
			out := cli.Stdout(cmd)
			out.Printf("dynmcp %s\n", about.Version)
			if about.Commit != "" {
				out.Printf("commit %s of %s\n", about.Commit, about.Date)
			}
			out.Printf("%s %s\n", about.Go, about.Platform)
			return out.Err
		}
	},
}

// A build describes how this dynmcp was built.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // "… with changes" if the work tree was dirty
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newBuild() build {
	b := build{Version: cli.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
