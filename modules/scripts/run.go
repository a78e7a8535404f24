// Package scripts has the tool run_script, by which a model runs a script that calls tools, and the verb run,
// which does the same.
package scripts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Run runs a script.
var Run = cli.Verb{
	Use:   "run [flags] FILE.js|- [args…] [-- command args…]",
	Group: cli.Operate,
	Short: "Run a script that calls tools",
	Long: `Run a script in JavaScript that calls tools, as a model does by run_script; see
docs/scripts.md. The script has the words behind its file as args, and - reads it
from stdin. Servers are started when the script calls them, and are stopped again
afterwards.

The script may call what "scripts" in the config allows, or the tools that --tools
names. What it returns is printed on stdout: a text as it is, all else as JSON. What
it prints goes to stderr. The exit status is 1 if the script fails.`,
	Example: `  dynmcp run report.js
  dynmcp run report.js -c mcp.json 2026-01 2026-02
  echo 'return await search("read a file")' | dynmcp run -
  dynmcp run move.js --tools 'files/*' --json`,
	Args: cobra.ArbitraryArgs,
	New: func(cmd *cobra.Command) cli.Run {
		var on selfhost.Target
		var tools []string
		var asJSON bool
		cmd.Flags().StringSliceVar(&tools, "tools", nil, "the tools that the script may call, in the place of those of the config: `patterns` such as @readonly or 'files/*'")
		cmd.Flags().BoolVar(&asJSON, "json", false, "print an object with the result, what was printed, and the calls")
		return on.Run(cmd, func(ctx context.Context, args []string) error {
			return run(ctx, &on, cmd.InOrStdin(), args, tools, asJSON)
		})
	},
}

func run(ctx context.Context, t *selfhost.Target, stdin io.Reader, args, tools []string, asJSON bool) error {
	if len(args) == 0 {
		return hint.With(errors.New("no script given"), "dynmcp run FILE.js [args…]; - reads the script from stdin")
	}
	source, err := read(ctx, stdin, args[0])
	if err != nil {
		return fmt.Errorf("read the script: %w", err)
	}
	cfg, err := withScripts(t.Cfg, tools)
	if err != nil {
		return err
	}
	h, err := selfhost.Start(ctx, cfg, t.Log)
	if err != nil {
		return err
	}
	defer h.Close()
	words, _ := json.Marshal(append([]string{}, args[1:]...)) // texts always marshal
	result, err := h.Conn.Call(ctx, "tools/call", fmt.Appendf(nil, `{"name":"run_script","arguments":{"code":%s,"args":%s}}`, wire.Quote(string(source)), words))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], cli.Interrupted(err))
	}
	return show(t, args[0], result, asJSON)
}

// read reads the script in the file name, or from stdin if name is "-".
func read(ctx context.Context, stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, regular.Large))
	}
	source, _, err := regular.ReadOrPipe(ctx, name, regular.Large)
	return source, err
}

// withScripts returns a config with the surface script. Scripts may call the tools that match the
// patterns tools or, if there are none, those that cfg allows. All servers are lazy, and results are
// not shortened.
func withScripts(cfg *schema.Config, tools []string) (*schema.Config, error) {
	may := cfg.ScriptLimits()
	for _, pattern := range tools {
		if what, advice := toolglob.CheckOfServers(pattern); what != "" {
			return nil, hint.With(fmt.Errorf("--tools: %q: %s", pattern, what), "%s", advice)
		}
		may.Tools = tools
	}
	may.Output = regular.Large
	with := selfhost.OnlyServers(cfg, conf.Names(conf.Wanted(cfg))...)
	with.Expose, with.Scripts, with.Catalog.Definitions = []string{schema.ExposeScript}, &may, schema.DefinitionsTypes
	return with, nil
}

// An outcome is the result of a script, for --json.
type outcome struct {
	Result  any             `json:"result"`
	Printed string          `json:"printed,omitempty"`
	Error   string          `json:"error,omitempty"`
	Calls   json.RawMessage `json:"calls,omitempty"`
}

// show prints the result of run_script.
func show(t *selfhost.Target, name string, result json.RawMessage, asJSON bool) error {
	var texts []string
	failed := string(wire.Get(result, "isError")) == "true"
	out := outcome{Calls: wire.Get(result, "_meta", "dynmcp/calls")}
	for block := range wire.Elements(wire.Get(result, "content")) {
		text, isText := wire.Text(wire.Get(block, "text"))
		switch {
		case !isText:
			kind, _ := wire.Text(wire.Get(block, "type"))
			mime, _ := wire.Text(wire.Get(block, "mimeType"))
			text = fmt.Sprintf("[%s]", strings.TrimSpace(kind+" "+mime))
		case wire.Get(block, "_meta", "dynmcp/printed") != nil:
			out.Printed = strings.TrimPrefix(strings.ReplaceAll(text, "\n> ", "\n"), "> ")
			continue
		}
		texts = append(texts, text)
	}
	whole := strings.Join(texts, "\n")
	if failed {
		out.Error = whole
	} else if out.Result = whole; whole != "" && strings.ContainsRune("{[", rune(whole[0])) && json.Valid([]byte(whole)) {
		out.Result = json.RawMessage(whole)
	}
	if asJSON {
		if err := terminal.WriteJSON(t.Out, out); err != nil {
			return err
		}
	} else {
		if out.Printed != "" {
			t.ErrOut.Printf("%s\n", out.Printed)
		}
		if !failed {
			t.Out.Printf("%s\n", whole)
		}
	}
	if failed {
		return errors.New(name + ": " + whole)
	}
	return cmp.Or(t.Out.Err, t.ErrOut.Err)
}
