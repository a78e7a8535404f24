package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
)

// List lists the runs of the user.
var List = cli.Verb{
	Use:   "ps [flags]",
	Group: cli.Watch,
	Short: "List the runs of dynmcp and their servers",
	Long: `List the runs of dynmcp that you have, for each its hosts and the state of its servers.
Nothing is started.`,
	Example: `  dynmcp ps
  dynmcp ps --json | jq -r '.[].servers[] | select(.error).name'`,
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		asJSON := cmd.Flags().Bool("json", false, "print a JSON array, with the last lines of stderr")
		return func(cmd *cobra.Command, _ []string) error {
			all, out := append([]Found{}, Find(cmd.Context(), 0)...), cli.Stdout(cmd)
			if *asJSON {
				return terminal.WriteJSON(out, all)
			}
			write(out, all)
			return out.Err
		}
	},
}

func write(out *terminal.Writer, all []Found) {
	if len(all) == 0 {
		out.Say("No run of dynmcp was found.")
	}
	for _, f := range all {
		hosts := "no host"
		if len(f.Hosts) > 0 {
			hosts = display.Fold(strings.Join(f.Hosts, ", "))
		}
		if f.More > 0 {
			hosts += fmt.Sprintf(" and %d more", f.More)
		}
		out.Heading(fmt.Sprintf("%d  %s  %s  %s", f.PID, f.Kind, hosts, strings.TrimSpace(f.Config+"  "+f.Profile)))
		t := terminal.Table{Header: []string{"SERVER", "STATE", "SINCE", "TOOLS", "STARTS", "ERROR"}, Shrink: 5}
		for _, s := range f.Servers {
			since := "-"
			if !s.Since.IsZero() {
				since = s.Since.Local().Format(time.DateTime)
			}
			t.Rows = append(t.Rows, []string{s.Name, s.State, since, fmt.Sprint(s.Tools), fmt.Sprint(s.Starts), display.Fold(s.Err)})
		}
		t.Write(out)
		for _, q := range f.Questions {
			out.Printf("asks: may %s be called with %s? (dynmcp answer %s)\n", q.Tool, display.Cut(q.Arguments, 200), q.ID)
		}
	}
}

// Answer answers a question of a run.
var Answer = cli.Verb{
	Use:    "answer ID once|session|no",
	Hidden: true,
	Short:  "Allow or refuse a pending call",
	Long: `Answer a call that the policy of a config has a person asked about, in the place of the
host that was asked: allow it once, allow its tool for the session of the host, or
refuse it. dynmcp ps shows what is asked.`,
	Example: "  dynmcp answer 4KQ7ZP2M once",
	Args: func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < 2:
			return hint.With(errors.New("no answer given"), "%s ID once, session or no; dynmcp ps shows what is asked", cmd.CommandPath())
		case len(args) > 2:
			return cli.UnexpectedArgument(cmd, args[2])
		}
		return nil
	},
	Complete: cobra.NoFileCompletions,
	New: func(*cobra.Command) cli.Run {
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if _, ok := answers[args[1]]; !ok {
				return hint.With(fmt.Errorf("%q is no answer", args[1]), "once, session or no")
			}
			for _, f := range Find(ctx, 0) {
				if slices.ContainsFunc(f.Questions, func(q aggregator.Question) bool { return q.ID == args[0] }) {
					return f.Answer(ctx, args[0], args[1])
				}
			}
			return hint.With(fmt.Errorf("no run asks %s", args[0]), "dynmcp ps shows what is asked")
		})
	},
}

// Start and Restart start a server of a run.
var (
	Start   = controlVerb("start", "Start a server of a run", "Started", `Start a server in the run that has it, unless it runs. It stays for its idle_timeout.`)
	Restart = controlVerb("restart", "Restart a server of a run", "Restarted", `Start a server again in the run that has it. Calls that it has are answered by the old
process, which then ends.`)
)

// Stop stops a server of a run, or a run.
var Stop = cli.Verb{
	Use:   "stop [flags] [SERVER]",
	Group: cli.Operate,
	Short: "Stop a server of a run, or a run",
	Long: `Have a server end in the run that has it, when its calls have ended. Its next use starts
it again: dynmcp set NAME --disabled prevents that. If several runs have a server of that
name, --run says which one is meant.

Without a server, --run ends that run and its servers, and --all every run that you have.
A host whose run has ended starts another one when it connects again.`,
	Example: `  dynmcp stop files
  dynmcp stop files --run 4711
  dynmcp stop --run 4711
  dynmcp stop --all`,
	Args: cli.AtMost(1), Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		pid := cmd.Flags().Int("run", 0, "the process `id` of the run")
		all := cmd.Flags().Bool("all", false, "end all runs")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			switch {
			case *all && (*pid != 0 || len(args) > 0):
				return hint.With(errors.New("--all does not go with a server or --run"), "leave out one of them")
			case len(args) == 1:
				return control(ctx, cmd, "stop", "Stopped", args[0], *pid)
			case *all:
				return end(ctx, cmd, Find(ctx, 0))
			case *pid != 0:
				run, err := Choose(Find(ctx, 0), *pid, "this process id", func(Found) bool { return true })
				if err != nil {
					return err
				}
				return end(ctx, cmd, []Found{run})
			}
			return hint.With(errors.New("no server name given"), "dynmcp stop SERVER, --run ID or --all; dynmcp ps lists runs and their servers")
		})
	},
}

// end ends runs.
func end(ctx context.Context, cmd *cobra.Command, all []Found) error {
	out := cli.Stdout(cmd)
	if len(all) == 0 {
		out.Say("No run of dynmcp was found.")
	}
	var failed []error
	for _, f := range all {
		if err := f.End(ctx); err != nil {
			failed = append(failed, cli.Interrupted(err))
			continue
		}
		out.Printf("Ended run %d\n", f.PID)
	}
	return errors.Join(append(failed, out.Err)...)
}

// Use changes the profile of a run.
var Use = cli.Verb{
	Use:   "use [flags] PROFILE",
	Group: cli.Operate,
	Short: "Switch a run to another profile",
	Long: `Have a run serve the servers of another profile of its config, until it ends or is told
another; "all" is every server. All hosts of the run see the change. What is in both
profiles stays as it is. Without --run it is the run of the config that is found here.`,
	Example: `  dynmcp use home
  dynmcp use all --run 4711`,
	Args: cli.One("no profile given", "PROFILE; all is every server"),
	New: func(cmd *cobra.Command) cli.Run {
		var from conf.Flags
		cmd.Flags().StringVarP(&from.Config, "config", "c", "", conf.ConfigUsage)
		pid := cmd.Flags().Int("run", 0, "the process `id` of the run")
		cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return from.Profiles(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		}
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			files, err := from.Files()
			if err != nil && *pid == 0 {
				return err
			}
			run, err := Choose(Find(ctx, 0), *pid, "this config", func(f Found) bool {
				return *pid != 0 || slices.ContainsFunc(files, func(path string) bool { return hosts.SameFile(path, f.Config) })
			})
			if err != nil {
				return err
			}
			return say(cmd, run.Use(ctx, args[0]), "Run %d has the profile %s\n", run.PID, args[0])
		})
	},
}

// say prints what was done unless it failed with err.
func say(cmd *cobra.Command, err error, format string, args ...any) error {
	if err != nil {
		return cli.Interrupted(err)
	}
	out := cli.Stdout(cmd)
	out.Printf(format, args...)
	return out.Err
}

func controlVerb(act, short, done, long string) cli.Verb {
	return cli.Verb{
		Use: act + " [flags] SERVER", Group: cli.Operate, Short: short,
		Long:    long + "\n\nIf several runs have a server of that name, --run says which one is meant.",
		Example: "  dynmcp " + act + " files\n  dynmcp " + act + " files --run 4711",
		Args:    cli.One("no server name given", "SERVER; dynmcp ps lists the servers of runs"), Complete: cobra.NoFileCompletions,
		New: func(cmd *cobra.Command) cli.Run {
			pid := cmd.Flags().Int("run", 0, "the process `id` of the run")
			return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
				return control(ctx, cmd, act, done, args[0], *pid)
			})
		},
	}
}

// control has the run that has a server start or stop it.
func control(ctx context.Context, cmd *cobra.Command, act, done, server string, pid int) error {
	run, err := Choose(Find(ctx, 0), pid, fmt.Sprintf("a server %q", server), func(f Found) bool {
		return slices.ContainsFunc(f.Servers, func(s Server) bool { return s.Name == server })
	})
	if err != nil {
		return err
	}
	return say(cmd, run.Do(ctx, act, server), "%s %q in run %d\n", done, server, run.PID)
}
