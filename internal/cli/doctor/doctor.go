// Package doctor has the verb doctor, which diagnoses problems.
package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/costs"
	"github.com/dynmcp/dynmcp/internal/cli/described"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/schema"
)

// Verb diagnoses a config and its servers.
var Verb = cli.Verb{
	Use:   "doctor [flags] [-- command args…]",
	Group: cli.Look,
	Short: "Diagnose problems",
	Long: `Look at the config and at what it needs: variables, commands, Node.js, packages,
addresses, the files of hosts, and what is kept of servers. Then start every server, and compare what a model reads of their tools
with what it reads through dynmcp.

Every finding says what to do about it. The exit status is 1 if there are
problems; warnings and notes do not count.`,
	Example: `  dynmcp doctor
  dynmcp doctor --no-start
  dynmcp doctor --json |
    jq -r '.findings[] | select(.level == "problem").message'`,
	Args:     cli.AtMost(0),
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		var on selfhost.Target
		d := doctor{Target: &on}
		on.Add(cmd)
		asJSON := cmd.Flags().Bool("json", false, "print the findings as JSON")
		descriptions := cmd.Flags().Bool("descriptions", false, "only check the descriptions of servers, and suggest better ones")
		noStart := cmd.Flags().Bool("no-start", false, "start no server; of addresses, check only that something answers")
		cli.AddTimeout(cmd, &d.timeout, "a server", "default: its load_timeout")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			on.AsWritten = *noStart || *descriptions
			if *descriptions {
				if _, err := on.Load(ctx, cmd, args); err != nil {
					return err
				}
				return described.Servers(ctx, &on, *asJSON)
			}
			d.checkCrashes()
			// A config that cannot be loaded is a finding like any other.
			if _, err := on.Load(ctx, cmd, args); err != nil {
				d.addError(aboutConfig, "", err)
			} else {
				d.examine(ctx, *noStart)
			}
			if ctx.Err() != nil {
				return cli.ErrInterrupted
			}
			return d.report(*asJSON)
		})
	},
}

// Levels of findings.
const (
	fine    = "ok"
	note    = "note"    // may matter in another environment
	warning = "warning" // works, but may fail later
	problem = "problem"
)

// A finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Server string `json:"server,omitempty"`
	Text   string `json:"message"`
	Hint   string `json:"hint,omitempty"`
	Stderr string `json:"stderr,omitempty"`
}

// A doctor collects findings. Its exported fields are the output of --json.
type doctor struct {
	OK       bool          `json:"ok"`
	Findings []finding     `json:"findings"`
	Host     *costs.Counts `json:"host,omitempty"`

	*selfhost.Target `json:"-"`
	timeout          time.Duration // 0 leaves it to load_timeout
}

// add records a finding without the config's secrets, because users share reports.
func (d *doctor) add(f finding) {
	f.Text, f.Hint, f.Stderr = cli.Secrets.String(f.Text), cli.Secrets.String(f.Hint), cli.Secrets.String(f.Stderr)
	d.Findings = append(d.Findings, f)
}

// addError records an error as a problem.
func (d *doctor) addError(check, server string, err error) {
	why := selfhost.Explain(err, d.timeout)
	d.add(finding{Check: check, Level: problem, Server: server, Text: why.Text, Hint: why.Hint, Stderr: why.Stderr})
}

// hasProblem reports whether a check found a problem with a server.
func (d *doctor) hasProblem(check, server string) bool {
	return slices.ContainsFunc(d.Findings, func(f finding) bool {
		return f.Check == check && f.Server == server && f.Level == problem
	})
}

// The names of the checks, in the order of the report.
const (
	aboutConfig   = "config"
	aboutCommands = "commands"
	aboutNode     = "node"
	aboutPackages = "packages"
	aboutServers  = "servers"
	aboutHosts    = "hosts"
	aboutRuns     = "runs"
)

var titles = []struct{ check, title string }{
	{aboutConfig, "Config and variables"},
	{aboutCommands, "Commands"},
	{aboutNode, "Node.js"},
	{aboutPackages, "Packages"},
	{aboutServers, "Servers"},
	{aboutHosts, "Files of hosts"},
	{aboutRuns, "Runs"},
}

func (d *doctor) examine(ctx context.Context, noStart bool) {
	d.checkConfig(ctx)
	d.checkHostFiles(ctx)
	d.checkLogins()
	d.checkStore()
	d.checkRecord()
	for _, s := range conf.Enabled(d.Cfg) {
		if s.Transport == schema.Stdio {
			d.checkCommand(ctx, s)
			d.checkPinned(s)
		}
	}
	d.checkNode(ctx)
	if noStart {
		d.checkAddresses(ctx)
		return
	}
	d.startAll(ctx)
}

func (d *doctor) report(asJSON bool) error {
	counts := map[string]int{}
	for _, f := range d.Findings {
		counts[f.Level]++
	}
	d.OK = counts[problem] == 0
	if asJSON {
		if err := terminal.WriteJSON(d.Out, d); err != nil {
			return err
		}
	} else {
		d.write()
		d.Out.Printf("\n%s, %s, %s\n", display.Plural(counts[problem], problem), display.Plural(counts[warning], warning), display.Plural(counts[note], note))
	}
	if !d.OK {
		return errors.New(display.Plural(counts[problem], problem) + " found")
	}
	return d.Out.Err
}

func (d *doctor) write() {
	separator := ""
	for _, t := range titles {
		first := true
		for _, f := range d.Findings {
			if f.Check != t.check {
				continue
			}
			if first {
				d.Out.Printf("%s", separator)
				d.Out.Heading(t.title)
				first, separator = false, "\n"
			}
			f.write(d.Out)
		}
	}
	if d.Host != nil && d.Host.Saved() != "" {
		d.Out.Say("\n%s `dynmcp tokens` says more.", d.Host.Saved())
	}
}

var levelColours = map[string]terminal.Colour{fine: terminal.Green, note: terminal.Dim, warning: terminal.Yellow, problem: terminal.Red}

// write prints the level and text of a finding, with stderr and hint below.
func (f *finding) write(out *terminal.Writer) {
	const column = "           " // where texts begin
	out.Printf("  ")
	out.Paint(levelColours[f.Level], f.Level)
	out.Printf("%s", strings.Repeat(" ", len(column)-2-len(f.Level)))
	text := f.Text
	if f.Server != "" {
		text = f.Server + ": " + text
	}
	out.Printf("%s\n", strings.TrimPrefix(terminal.Indent(out.Fold(text, len(column)), column), column))
	out.Failure(column, f.Stderr, f.Hint)
}
