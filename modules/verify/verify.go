// Package verify compares the answers of servers with those that hosts get behind dynmcp.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/verify/probe"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// verb compares servers with themselves behind dynmcp.
var verb = cli.Verb{
	Use:   "verify [flags] [SERVER…] [-- command args…]",
	Group: cli.Develop,
	Short: "Check that servers behave the same through dynmcp",
	Long: `Start each server directly and behind dynmcp, ask both the same, and compare the
answers byte for byte: the handshake, the lists, resources, prompts, tools that only
read, progress, big numbers, errors, cancellation and notifications. This is done in
both eras of the protocol where the server speaks them, for each surface, and as a
second host that declares extensions, such as MCP Apps. Without a name, all servers of
the config are compared.

Tools that do not say that they only read are called with --call alone. Arguments are
made of the input schema. A server is asked directly before and after dynmcp is: what
differs between the two, such as a time, varies by itself and is not compared.

The report shows no contents of strings, and may be shown to others. It says who ended
a connection, and what was not compared when the time of --within was over. The exit
status is 1 if something differs, or could not be compared.`,
	Example: `  dynmcp verify
  dynmcp verify files --json
  dynmcp verify --within 30m
  dynmcp verify --call-writes \
    -- npx -y @modelcontextprotocol/server-everything stdio`,
	Args: cobra.ArbitraryArgs,
	New: func(cmd *cobra.Command) cli.Run {
		v := &verifier{wait: 10 * time.Second, within: 10 * time.Minute}
		var asJSON bool
		cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
		cmd.Flags().BoolVar(&v.call, "call-writes", false, "call tools that do not say that they only read, too")
		cli.AddOld(cmd, "call-writes", "call")
		cli.AddTimeout(cmd, &v.wait, "an answer", "default 10s")
		cmd.Flags().DurationVar(&v.within, "within", v.within, "how long all of it may take, a `duration` such as 10m")
		cmd.Flags().StringSliceVar(&v.surfaces, "surface", comparedOf(cmd.Context()), "the `surfaces` to compare")
		cmd.ValidArgsFunction = conf.CompleteServers(&v.Flags, "")
		var heard string
		cmd.Flags().StringVar(&heard, "relay", "", "pass stdin on to a command, and count in this `file` the cancellations that it hears")
		cmd.Flags().Lookup("relay").Hidden = true // for verify itself
		compare := v.Run(cmd, func(ctx context.Context, args []string) error {
			return v.run(ctx, args, asJSON)
		})
		return func(cmd *cobra.Command, args []string) error {
			if heard != "" {
				return relay(heard, args)
			}
			return compare(cmd, args)
		}
	},
}

// A verifier compares servers.
type verifier struct {
	selfhost.Target
	call     bool
	surfaces []string
	rules    rule.Rules
	extended bool                              // the host declares extensions
	wait     time.Duration                     // for an answer
	within   time.Duration                     // for all of it
	waiting  *terminal.Progress                // shows the step; nil in tests
	current  string                            // the server that is compared, for waiting
	between  func(schema.Server) schema.Server // replaces the server behind dynmcp, for tests; may be nil
}

// comparedOf returns the surfaces of the program that can be compared: they show the tools themselves, or a
// tool that calls any of them.
func comparedOf(ctx context.Context) []string {
	return slices.DeleteFunc(schema.SurfacesOf(module.SectionsOf(ctx)), func(surface string) bool {
		return surface == schema.ExposeScript || surface == schema.ExposeAuto
	})
}

// run compares the servers called names, or all servers.
func (v *verifier) run(ctx context.Context, names []string, asJSON bool) error {
	compared := comparedOf(ctx)
	for _, surface := range v.surfaces {
		if !slices.Contains(compared, surface) {
			return hint.With(fmt.Errorf("--surface: %q cannot be compared", surface), "use %s", strings.Join(compared, ", "))
		}
	}
	if len(v.surfaces) == 0 {
		return hint.With(errors.New("--surface names no surface"), "use %s", strings.Join(compared, ", "))
	}
	servers, err := conf.Named(v.Cfg, names)
	if err != nil {
		return err
	}
	if v.rules, err = rule.Of(v.Cfg); err != nil {
		return err
	}
	conf.SayIfEmpty(v.ErrOut, v.Cfg)
	bounded, cancel := context.WithTimeoutCause(ctx, v.within, stopped(fmt.Sprintf("the %v of --within are over", v.within)))
	defer cancel()
	all, bad := []report{}, 0
	for i, s := range servers {
		v.current = fmt.Sprintf("comparing %s (%d of %d)", s.Name, i+1, len(servers))
		v.waiting = terminal.ShowProgress(v.ErrOut, v.current)
		r := v.server(bounded, s)
		v.waiting.End()
		if all = append(all, r); !asJSON {
			r.write(v.Out)
		}
		if r.failed() {
			bad++
		}
	}
	if asJSON {
		if err := terminal.WriteJSON(v.Out, all); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	if bad > 0 {
		return fmt.Errorf("%d of %s differ behind dynmcp or could not be compared", bad, display.Plural(len(all), "server"))
	}
	return v.Out.Err
}

// eras are the eras that a server may speak.
var eras = []struct {
	era  transports.Era
	name string
}{{transports.Handshake, "handshake"}, {transports.Stateless, "stateless"}}

// server compares a server in each era that it speaks.
func (v *verifier) server(ctx context.Context, s schema.Server) report {
	out := report{Name: s.Name}
	if s.Off != nil {
		out.Error = "it is off: " + s.Off.Why()
		return out
	}
	// Keys of the entry that change the tools are ignored: their effect is intended.
	for key, changed := range map[string]bool{
		"tool_filter": len(s.ToolFilter) > 0, "path_aliases": len(s.PathAliases) > 0, "tool_overrides": len(s.ToolOverrides) > 0,
		"max_output_chars": s.MaxOutputChars > 0, "pins": approval.Needed(s) != approval.Off,
	} {
		if changed {
			out.LeftOut = append(out.LeftOut, key)
		}
	}
	slices.Sort(out.LeftOut)
	may := v.mayCall(s)
	s = approval.Without(s)
	s.ToolFilter, s.PathAliases, s.ToolOverrides, s.MaxOutputChars = nil, nil, nil, 0
	var first error
	for _, e := range eras {
		rows, err := v.inOneEra(ctx, &out, s, e.name, e.era, may)
		if over(ctx) != nil {
			out.NotCompared = append(out.NotCompared, e.name)
			continue
		}
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		out.Eras = append(out.Eras, e.name)
		if slices.Contains(v.surfaces, schema.ExposeDirect) {
			more, err := v.withExtensions(ctx, &out, s, e.name, e.era, may)
			if over(ctx) != nil {
				out.NotCompared = append(out.NotCompared, e.name+" as a host with extensions")
			} else if err != nil {
				first = &behindError{fmt.Errorf("as a host with extensions: %w", err)}
			}
			rows = append(rows, more...)
		}
		for i := range rows {
			rows[i].Era = e.name
		}
		out.Rows = append(out.Rows, rows...)
	}
	if len(out.NotCompared) > 0 {
		out.Error = over(ctx).Error()
		return out
	}
	if behind, ok := errors.AsType[*behindError](first); ok || len(out.Eras) == 0 {
		if ok {
			first = behind.error
			out.Error = "behind dynmcp: "
		}
		out.Error += cli.Secrets.String(cmp.Or(first, probe.ErrEra).Error())
	}
	return out
}

// A behindError is the error of a server that starts directly, but not behind dynmcp.
type behindError struct{ error }

// A stopped says what ended a wait.
type stopped string

func (s stopped) Error() string { return string(s) }

// over returns why a comparison is over before its end, or nil.
func over(ctx context.Context) error {
	if ctx.Err() != nil && !errors.As(context.Cause(ctx), new(stopped)) {
		return cli.ErrInterrupted
	}
	return context.Cause(ctx)
}

// inOneEra compares a server on each surface. The direct requests are repeated afterwards, and
// once more if something differs, to find the values that vary by themselves.
func (v *verifier) inOneEra(ctx context.Context, out *report, s schema.Server, name string, era transports.Era, may mayCall) ([]row, error) {
	v.step(name, "directly")
	before, p, err := v.askDirectly(ctx, s, era, nil, may)
	if err != nil {
		return nil, err
	}
	out.noteEnd(ctx, name+", directly", before.lost)
	surfaces := map[string]*run{}
	for _, surface := range v.surfaces {
		v.step(name, surface)
		if surfaces[surface], err = v.askBehind(ctx, s, surface, era, p); err != nil {
			return nil, &behindError{fmt.Errorf("%s: %w", surface, err)}
		}
		out.noteEnd(ctx, name+", behind dynmcp, "+surface, surfaces[surface].lost)
	}
	v.step(name, "directly again")
	varying := variations{}
	var rows []row
	for range 2 {
		again, _, err := v.askDirectly(ctx, s, era, p, may)
		if err != nil {
			return nil, err
		}
		out.noteEnd(ctx, name+", directly", again.lost)
		varying.add(before, again)
		rows = nil
		for _, surface := range v.surfaces {
			rows = append(rows, rowsOf(before, surfaces[surface], varying)...)
		}
		if !(&report{Rows: rows}).failed() {
			break
		}
	}
	return rows, nil
}

// step shows what is asked next.
func (v *verifier) step(era, what string) {
	if v.waiting != nil {
		v.waiting.Say(v.current + ": " + era + ", " + what)
	}
}

// withExtensions compares a server once more as a second host does, which declares extensions. Surfaces that
// hide tools have views and skills of their own.
func (v *verifier) withExtensions(ctx context.Context, out *report, s schema.Server, name string, era transports.Era, may mayCall) ([]row, error) {
	second := *v
	second.extended, second.surfaces = true, []string{schema.ExposeDirect}
	rows, err := second.inOneEra(ctx, out, s, name, era, may)
	for i := range rows {
		rows[i].Host = "extensions"
	}
	return rows, err
}

// askDirectly runs a plan on the server itself. If p is nil, the plan is made from its lists.
func (v *verifier) askDirectly(ctx context.Context, s schema.Server, era transports.Era, p *plan, may mayCall) (*run, *plan, error) {
	if err := over(ctx); err != nil {
		return nil, nil, err
	}
	c, err := v.connectDirectly(ctx, s, era)
	if err != nil {
		return nil, nil, err
	}
	r, p := v.ask(ctx, c, s, schema.ExposeDirect, era, p, may)
	return r, p, nil
}

// askBehind runs a plan on the server behind dynmcp.
func (v *verifier) askBehind(ctx context.Context, s schema.Server, surface string, era transports.Era, p *plan) (*run, error) {
	c, err := v.connectBehind(ctx, s, surface, era)
	if err != nil {
		return nil, err
	}
	r, _ := v.ask(ctx, c, s, surface, era, p, nil)
	return r, nil
}

// ask runs a plan over a connection, and closes it.
func (v *verifier) ask(ctx context.Context, c *connection, s schema.Server, surface string, era transports.Era, p *plan, may mayCall) (*run, *plan) {
	defer c.close()
	r := &run{connection: c, server: s.Name, era: era, surface: surface, seen: map[place][]byte{}}
	if surface == schema.ExposeDirect {
		r.recordServer(ctx)
	} else {
		p = &plan{requests: slices.DeleteFunc(slices.Clone(p.requests), func(q request) bool { return q.what != tools && q.what != bigNumber })}
	}
	if r.planned = p != nil; !r.planned {
		p = planOf(r, may)
	}
	r.execute(ctx, p)
	return r, p
}

// A mayCall reports whether the tool with this definition may be called with arguments.
type mayCall func(tool, arguments []byte) bool

// mayCall returns a function that permits read-only tools, or all with --call, except those
// that the config hides or refuses.
func (v *verifier) mayCall(s schema.Server) mayCall {
	filter := toolglob.NewFilter(s.ToolFilter)
	return func(tool, arguments []byte) bool {
		access, name := toolglob.AccessOf(wire.Get(tool, "annotations")), textOf(wire.Get(tool, "name"))
		if access != toolglob.ReadOnly && !v.call || !filter.Passes(name, access) {
			return false
		}
		call := rule.Call{Server: s.Name, Tool: name, Class: toolglob.ClassOf(wire.Get(tool, "annotations")), Surface: schema.ExposeDirect, Arguments: arguments}
		verdict, err := rule.Judge(v.rules, &call)
		return err == nil && verdict.Do == schema.PolicyAllow
	}
}
