package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
	"github.com/dynmcp/dynmcp/modules/sandbox/entry"
	"github.com/dynmcp/dynmcp/schema"
)

// verb shows what a server may access, or learns it.
var verb = cli.Verb{
	Use:   "sandbox [flags] SERVER",
	Group: cli.Guard,
	Short: "Show a server's permissions",
	Long: `Show a server's permissions: the files that it may read and change, and what it may
connect to. Nothing is started. A server without "sandbox" in its entry may do what you
may; then it is said what it could do with "sandbox": true.

With --learn the server is started without limits, and what it reads, changes and connects
to is noted. The narrowest sandbox that allows it is shown, and with --write put into its
entry. Call the tools that you use with --call: what a server does not do then, it may not
do later.`,
	Example: `  dynmcp sandbox files
  dynmcp sandbox files --learn --call 'read_file {"path": "notes.txt"}' --write`,
	Args: cli.AtMost(1),
	New: func(cmd *cobra.Command) cli.Run {
		l := learner{from: conf.Flags{AsWritten: true}}
		l.from.Add(cmd)
		cmd.Flags().BoolVar(&l.learn, "learn", false, "start the server without limits, and note what it does")
		cmd.Flags().StringArrayVar(&l.calls, "call", nil, "with --learn, call this `tool`, and its arguments as an object; may be repeated")
		cmd.Flags().BoolVar(&l.write, "write", false, "with --learn, put the sandbox into the entry")
		cmd.ValidArgsFunction = conf.CompleteServers(&l.from, "")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return hint.With(errors.New("no server given"), "dynmcp ls lists them")
			}
			if !l.learn && (len(l.calls) > 0 || l.write) {
				return hint.With(errors.New("--call and --write go with --learn"), "dynmcp sandbox %s --learn", args[0])
			}
			return l.run(ctx, cli.Stdout(cmd), args[0])
		})
	},
}

type learner struct {
	from         conf.Flags
	learn, write bool
	calls        []string
}

func (l *learner) run(ctx context.Context, out *terminal.Writer, name string) error {
	l.from.AsWritten = !l.learn
	cfg, err := l.from.Load(ctx)
	if err != nil {
		return err
	}
	s, err := conf.ServerNamed(cfg, name)
	if err != nil {
		return err
	}
	if s.Transport != schema.Stdio {
		return fmt.Errorf("%s runs at %s, where dynmcp cannot limit it", s.Name, conf.Endpoint(s))
	}
	if !l.learn {
		return describe(out, s)
	}
	if s.Off != nil {
		return conf.OffError(s)
	}
	found, err := l.watch(ctx, cfg, s)
	if err != nil {
		return err
	}
	found.show(out)
	if !l.write {
		return out.Err
	}
	return errors.Join(out.Err, l.save(out, cfg, s.Name, found.Box))
}

func (l *learner) watch(ctx context.Context, cfg *schema.Config, s schema.Server) (learned, error) {
	var calls []toolCall
	for _, text := range l.calls {
		tool, arguments, _ := strings.Cut(text, " ")
		if arguments = strings.TrimSpace(arguments); arguments == "" {
			arguments = "{}"
		}
		if wire.TypeName([]byte(arguments)) != "an object" || !json.Valid([]byte(arguments)) {
			return learned{}, hint.With(fmt.Errorf("--call %q: the arguments are no JSON object", text), `write it like --call 'read_file {"path": "notes.txt"}'`)
		}
		calls = append(calls, toolCall{tool, json.RawMessage(arguments)})
	}
	rules, err := rule.Of(cfg)
	if err != nil {
		return learned{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.LoadTimeout)
	defer cancel()
	trace := &box.Trace{Learn: true}
	if err := watch(ctx, s, trace, cli.Version, rules, calls...); err != nil {
		return learned{}, cli.Interrupted(err)
	}
	return learn(s, trace), nil
}

func (l *learner) save(out *terminal.Writer, cfg *schema.Config, name string, access entry.Sandbox) error {
	file, unlock, err := editfile.LockConfig(cfg.Origin(name).File)
	if err != nil {
		return err
	}
	defer unlock()
	text, err := schema.SetKey(file.Path, file.Old, name, "sandbox", access)
	if err != nil {
		return err
	}
	if err := file.Replace(text); err != nil {
		return err
	}
	out.Printf("Wrote it into %s\n", file.Name())
	return nil
}

func (l learned) show(out *terminal.Writer) {
	for _, part := range []struct {
		title string
		all   []string
	}{
		{"It read, beyond what every server may:", l.Box.Read},
		{"It changed:", l.Box.Write},
		{"It connected to:", append(slices.Clone(l.Box.Network.Hosts), l.Addresses...)},
	} {
		out.Heading(part.title)
		if len(part.all) == 0 {
			part.all = []string{"nothing"}
		}
		writeLines(out, part.all)
	}
	if len(l.Addresses) > 0 {
		out.Printf("\nIt connects by itself, not by a proxy, so its network cannot be a list of hosts.\n")
	}
	out.Printf("\n\"sandbox\": %s\n", schema.ValueJSON(l.Box))
}

// describe prints what a server may access.
func describe(out *terminal.Writer, s schema.Server) error {
	if !entry.Of(s).On {
		out.Printf("%s has no sandbox: it may do what you may. With \"sandbox\": true:\n\n", s.Name)
	}
	within := entry.Confined(s, entry.Boxed(s))
	policy := within.Policy()
	system := append(box.System(), box.Devices()...)
	own := func(paths []string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
			return slices.ContainsFunc(system, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
		})
	}
	out.Heading("It may read, and run programs of:")
	writeLines(out, append([]string{"programs, libraries and settings of the system"}, own(policy.Read)...))
	out.Heading("It may change:")
	writeLines(out, append([]string{"a temporary directory of its own, which goes when it ends"}, own(policy.Write)...))
	out.Heading("It may connect to:")
	switch policy.Network {
	case sandbox.NoNetwork:
		writeLines(out, []string{"nothing"})
	case sandbox.OnlyByProxy:
		writeLines(out, within.Hosts)
	default:
		writeLines(out, []string{"any address, this machine's too"})
	}
	out.Heading("It has these variables:")
	var names []string
	for _, entry := range within.Env {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	writeLines(out, slices.Compact(names))
	restrictions, err := sandbox.Build(policy)
	if missing, ok := errors.AsType[*sandbox.MissingError](err); ok {
		out.Printf("\nIt is not started here: %s\n", missing)
	} else if err != nil {
		return err
	}
	return errors.Join(out.Err, restrictions.Close())
}

func writeLines(out *terminal.Writer, all []string) {
	for _, one := range all {
		out.Printf("  %s\n", one)
	}
}
