package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

func doctorCommand() *cobra.Command {
	var on target
	var asJSON, noStart bool
	var timeout milliseconds
	cmd := &cobra.Command{
		Use:   "doctor [flags] [-- command args…]",
		Short: "Find out why something does not work",
		Long: `Look at the config and at what it needs: variables, commands, Node.js, packages,
addresses, and what is kept of servers. Then start every server, and compare what a model reads of their tools
with what it reads through dynmcp.

Every finding says what to do about it. The exit status is 1 if there are
problems; warnings and notes do not count.`,
		Example: `  dynmcp doctor
  dynmcp doctor --no-start
  dynmcp doctor --json |
    jq -r '.findings[] | select(.level == "problem").message'`,
		Args:              atMost(0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := doctor{target: &on, timeout: time.Duration(timeout)}
			return interruptibly(cmd, func(ctx context.Context) error {
				on.asWritten = noStart
				// A config that cannot be loaded is a finding like any other.
				if _, err := on.load(ctx, cmd, args); err != nil {
					d.addError(aboutConfig, "", err)
				} else {
					d.examine(ctx, noStart)
				}
				if ctx.Err() != nil {
					return errInterrupted
				}
				return d.report(asJSON)
			})
		},
	}
	on.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().BoolVar(&noStart, "no-start", false, "start no server; of addresses, check only that something answers")
	timeout.add(cmd)
	return cmd
}

// Levels of findings.
const (
	fine    = "ok"
	note    = "note"    // may matter elsewhere
	warning = "warning" // works now
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

// A doctor collects findings.
type doctor struct {
	OK       bool         `json:"ok"`
	Findings []finding    `json:"findings"`
	Host     *tokenCounts `json:"host,omitempty"`

	*target
	timeout time.Duration // 0 leaves it to load_timeout
}

// add records a finding, without the config's secrets: reports are made to be
// passed on.
func (d *doctor) add(f finding) {
	f.Text, f.Hint, f.Stderr = secrets.String(f.Text), secrets.String(f.Hint), secrets.String(f.Stderr)
	d.Findings = append(d.Findings, f)
}

// addError records an error as a problem.
func (d *doctor) addError(check, server string, err error) {
	why := explain(err, d.timeout)
	d.add(finding{Check: check, Level: problem, Server: server, Text: why.text, Hint: why.hint, Stderr: why.stderr})
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
)

var titles = []struct{ check, title string }{
	{aboutConfig, "Config and variables"},
	{aboutCommands, "Commands"},
	{aboutNode, "Node.js"},
	{aboutPackages, "Packages"},
	{aboutServers, "Servers"},
}

func (d *doctor) examine(ctx context.Context, noStart bool) {
	d.checkConfig(ctx)
	d.checkLogins()
	d.checkStore()
	for _, s := range enabled(d.cfg) {
		if s.Transport == schema.Stdio {
			d.checkCommand(s)
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
		if err := terminal.WriteJSON(d.out, d); err != nil {
			return err
		}
	} else {
		d.write()
		d.out.Printf("\n%s, %s, %s\n", count(counts[problem], problem), count(counts[warning], warning), count(counts[note], note))
	}
	if !d.OK {
		return errors.New(count(counts[problem], problem) + " found")
	}
	return d.out.Err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
				d.out.Printf("%s", separator)
				d.out.Heading(t.title)
				first, separator = false, "\n"
			}
			f.write(d.out)
		}
	}
	if d.Host != nil && d.Host.saved() != "" {
		d.out.Say("\n%s `dynmcp tokens` says more.", d.Host.saved())
	}
}

var levelColours = map[string]terminal.Colour{fine: terminal.Green, note: terminal.Dim, warning: terminal.Yellow, problem: terminal.Red}

// write prints a level, a text, and below it what goes with it.
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
