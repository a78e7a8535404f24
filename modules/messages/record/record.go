// Package record has the verb record, which serves a host and records each message.
package record

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/stdio"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/recording"
	"github.com/dynmcp/dynmcp/modules/messages/inspect"
)

// Verb serves one host, and records the messages.
var Verb = cli.Verb{
	Use:   "record -o FILE [flags] [-- command args…]",
	Group: cli.Develop,
	Short: "Serve a host and record each message",
	Long: `Serve an MCP host on stdin and stdout as dynmcp without a verb does, and write each message
of the host and of the servers to a file, with its time and direction. Secrets of the
config are taken out. Put it into a host's config in the place of dynmcp.

The file is a line of JSON for each message, and only you may read it. If it is there
already, the new one has a number in its name. dynmcp replay stands in for a server that
was recorded.`,
	Example: `  dynmcp record -o memory.jsonl -- npx -y @modelcontextprotocol/server-memory
  dynmcp record -o run.jsonl -c mcp.json`,
	Args: cli.AtMost(0),
	New: func(cmd *cobra.Command) cli.Run {
		var flags stdio.Flags
		flags.Add(cmd)
		var to inspect.Output
		to.Add(cmd, "output", "o", "the `file` to write")
		return func(cmd *cobra.Command, args []string) error {
			if to.Path == "" {
				return hint.With(errors.New("no file for the recording given"), "dynmcp record -o FILE -- COMMAND")
			}
			file, err := to.Create(recording.Header{Dynmcp: cli.Version, Single: cmd.ArgsLenAtDash() >= 0, Expose: flags.Expose}, cli.Stderr(cmd))
			if err != nil {
				return err
			}
			defer file.Close()
			messages := &event.Tap{}
			recorder := recording.Start(messages, file, file.Began(), cli.Secrets.String)
			err = flags.Serve(cmd, args, messages)
			if failed := recorder.Close(); failed != nil {
				err = errors.Join(err, fmt.Errorf("the recording ends early: %w", failed))
			}
			return err
		}
	},
}
