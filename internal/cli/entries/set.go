package entries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
)

// A change holds what set is to change.
type change struct {
	from                       conf.Flags
	user                       bool // change the user's config
	description                string
	describes, enable, disable bool
	assigned                   []string // PATH=VALUE
	unset                      []string // paths
	dryRun                     bool
	sections                   []schema.Section // of the modules
}

// Set changes a server of a config.
var Set = cli.Verb{
	Use:   "set [flags] NAME [PATH=VALUE…]",
	Group: cli.SetUp,
	Short: "Change a server of the config file",
	Long: `Change a server in the config file that has it. PATH is a key of its entry, or one below it:
timeout, env.TOKEN, headers.X-Key, args[0], sandbox.network, tool_overrides.TOOL.timeout. VALUE
is what the key takes: text as it is, a number, a time, true or false; a list as words, with quotes
as in a shell, or as JSON; an object as JSON. policy.TOOL is what is done with calls of a tool:
allow, ask or deny.

The change is checked and shown as a diff. Comments, layout and all other entries of the file stay
as they are, and the old file is kept with the suffix .bak. Runs of dynmcp that serve the config
follow it.`,
	Example: `  dynmcp set git --description "Read and search git history."
  dynmcp set git timeout=30s 'env.TOKEN=${keyring:git}' --unset env.OLD
  dynmcp set git args='--repository "/srv/my project"' --dry-run
  dynmcp set git policy.git_push=ask`,
	Args: func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return hint.With(errors.New("no server given"), "%s NAME PATH=VALUE; dynmcp ls lists the servers", cmd.CommandPath())
		}
		for _, arg := range args[1:] {
			if path, _, ok := strings.Cut(arg, "="); !ok || path == "" {
				return hint.With(fmt.Errorf("%q is not PATH=VALUE", arg), "write it like timeout=30s or 'env.TOKEN=${TOKEN}'")
			}
		}
		return nil
	},
	New: func(cmd *cobra.Command) cli.Run {
		c := change{from: conf.Flags{AsWritten: true}}
		c.from.Add(cmd)
		cmd.Flags().BoolVar(&c.user, "user", false, "change your own config, whatever this directory has")
		cmd.Flags().StringVar(&c.description, "description", "", "what the server is good for, `text` for the model; empty takes it out")
		cmd.Flags().BoolVar(&c.enable, "enabled", false, "let the server be started")
		cmd.Flags().BoolVar(&c.disable, "disabled", false, "leave the server out of runs")
		cmd.Flags().StringArrayVar(&c.unset, "unset", nil, "take the key at this `path` out; may be repeated")
		cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show the diff and write nothing")
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return conf.CompleteServers(&c.from, "")(cmd, args, word)
			}
			return c.complete(cmd.Context(), args[0], "="), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		_ = cmd.RegisterFlagCompletionFunc("unset", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.complete(cmd.Context(), args[0], ""), cobra.ShellCompDirectiveNoFileComp
		})
		return func(cmd *cobra.Command, args []string) error {
			c.describes, c.assigned = cmd.Flags().Changed("description"), args[1:]
			c.sections = module.SectionsOf(cmd.Context())
			switch {
			case c.enable && c.disable:
				return hint.With(errors.New("--enabled and --disabled exclude each other"), "leave out one of them")
			case !c.enable && !c.disable && !c.describes && len(c.assigned)+len(c.unset) == 0:
				return hint.With(errors.New("nothing to change was given"), "PATH=VALUE, --unset PATH, --enabled, --disabled or --description TEXT")
			}
			path, err := c.fileOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.write(cli.Stdout(cmd), cli.Stderr(cmd), path, args[0])
		}
	},
}

// complete returns the paths that the entry of a server may have, with suffix.
func (c *change) complete(ctx context.Context, name, suffix string) (words []string) {
	path, err := c.fileOf(ctx, name)
	if err != nil {
		return nil
	}
	file, err := editfile.OpenConfig(path)
	if err != nil {
		return nil
	}
	for _, at := range schema.Paths(file.Path, file.Old, name, module.SectionsOf(ctx)) {
		words = append(words, at+suffix)
	}
	return append(words, "policy.")
}

// fileOf returns the config file with the entry of a server or, if only rules about its tools are changed, with
// the rules: those of a nearer file would take the place of all others.
func (c *change) fileOf(ctx context.Context, name string) (_ string, err error) {
	if c.user {
		if c.from.Config, err = (conf.Choice{Config: c.from.Config, User: true}).File(); err != nil {
			return "", err
		}
	}
	cfg, err := c.from.Load(ctx)
	if err != nil {
		return "", err
	}
	if _, err := conf.ServerNamed(cfg, name); err != nil {
		return "", err
	}
	path, rules := cfg.Origin(name).File, 0
	if user := conf.FindUser(); c.from.Config != "" && hosts.SameFile(path, user) && !hosts.SameFile(c.from.Config, user) {
		return "", hint.With(fmt.Errorf("%s has no server %q: it is in %s", c.from.Config, name, user), "dynmcp set --user %s changes it there", name)
	}
	paths := slices.Concat(c.assigned, c.unset)
	for _, at := range paths {
		if _, ok := schema.RulePath(name, at); ok {
			rules++
		}
	}
	if rules == 0 {
		return path, nil
	}
	i := slices.IndexFunc(cfg.Sources, func(source string) bool {
		file, err := editfile.Open(source)
		return err == nil && schema.HasPolicy(file.Path, file.Old)
	})
	if i < 0 || cfg.Sources[i] == path {
		return path, nil
	}
	if rules < len(paths) || c.describes || c.enable || c.disable {
		return "", hint.With(fmt.Errorf("the policy is in %s, and %s in %s", cfg.Sources[i], name, path), "change one of them at a time")
	}
	if _, err := os.Stat(cfg.Sources[i]); err != nil {
		return "", err
	}
	return cfg.Sources[i], nil
}

func (c *change) write(out, errOut *terminal.Writer, path, name string) error {
	file, unlock, err := editfile.LockConfig(path)
	if err != nil {
		return err
	}
	defer unlock()
	text, err := c.edit(file.Path, file.Old, name)
	if err != nil {
		return err
	}
	if bytes.Equal(text, file.Old) {
		out.Printf("%s says so already\n", file.Name())
		return out.Err
	}
	editfile.ShowDiff(out, file.Path, file.Old, text, mask.File)
	for _, place := range secretsIn(file.Path, text, name, c.sections) {
		if !slices.Contains(secretsIn(file.Path, file.Old, name, c.sections), place) {
			errOut.Printf("%s may hold a secret in plain text; dynmcp secret move %s takes it into the keyring\n", place, name)
		}
	}
	if c.dryRun {
		return out.Err
	}
	if err := file.Replace(text); err != nil {
		return fmt.Errorf("change %q: %w", name, err)
	}
	out.Printf("Changed %q in %s\n", name, file.Name())
	return out.Err
}

// secretsIn describes the places of secrets in the entry of a server.
func secretsIn(path string, text []byte, name string, sections []schema.Section) []string {
	servers, _ := schema.Written(path, text, sections) // none, if the file is broken
	for _, s := range servers {
		if s.Name == name {
			return s.SecretPlaces()
		}
	}
	return nil
}

// edit returns the text of a config file with the changed entry of a server.
func (c *change) edit(path string, text []byte, name string) (_ []byte, err error) {
	for _, at := range c.unset {
		if match, ok := schema.RulePath(name, at); ok {
			text, err = schema.SetRule(path, text, match, "", c.sections)
		} else if p, found := schema.PlaceOf(path, text, name, at, c.sections); found != nil {
			err = found
		} else {
			text, err = p.Unset()
		}
		if err != nil {
			return nil, err
		}
	}
	for _, assigned := range c.assigned {
		at, value, _ := strings.Cut(assigned, "=")
		if match, ok := schema.RulePath(name, at); ok {
			text, err = schema.SetRule(path, text, match, value, c.sections)
		} else if p, found := schema.PlaceOf(path, text, name, at, c.sections); found != nil {
			err = found
		} else {
			text, err = p.Set(value, secretref.Split)
		}
		if err != nil {
			return nil, err
		}
	}
	if c.describes {
		text, err = schema.SetKey(path, text, name, "description", strings.TrimSpace(c.description))
	}
	if err != nil || !c.enable && !c.disable {
		return text, err
	}
	if text, err = schema.SetKey(path, text, name, "enabled", false); err != nil { // a key of some hosts
		return nil, err
	}
	return schema.SetKey(path, text, name, "disabled", c.disable)
}
