// Package update has the verb update, which replaces pinned versions of servers.
package update

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/changes"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/warm"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/modules/registry/adding"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Update replaces the versions of servers by newer ones.
var Update = cli.Verb{
	Use:   "update [flags] [server]",
	Group: cli.SetUp,
	Short: "Update pinned versions of servers",
	Long: `Replace the pinned version of a server by the newest, or those of all servers that
dynmcp update --check lists. The newest version is started, and it is shown which of its tools are
new, gone or changed, before anything is written: then you are asked, unless --yes is given.
The old file is kept with the suffix .bak.`,
	Example: `  dynmcp update
  dynmcp update github --yes`,
	Args: cli.AtMost(1),
	New: func(cmd *cobra.Command) cli.Run {
		u := updater{on: &selfhost.Target{}}
		cmd.Flags().BoolVarP(&u.yes, "yes", "y", false, "write newer versions without asking")
		cmd.Flags().BoolVar(&u.check, "check", false, "list the servers with newer versions, and change nothing")
		cmd.Flags().BoolVar(&u.asJSON, "json", false, "with --check, print a JSON array")
		adding.AddRegistryFlag(cmd, &u.registry)
		cmd.ValidArgsFunction = conf.CompleteServers(&u.on.Flags, "")
		u.on.Add(cmd)
		return func(cmd *cobra.Command, args []string) error {
			names, err := u.on.Load(cmd.Context(), cmd, args)
			if err != nil {
				return err
			}
			return u.run(cmd, names)
		}
	},
}

type updater struct {
	on       *selfhost.Target
	registry string
	yes      bool
	check    bool
	asJSON   bool
}

func (u *updater) run(cmd *cobra.Command, names []string) error {
	servers := conf.Enabled(u.on.Cfg)
	if len(names) > 0 {
		s, err := conf.ServerNamed(u.on.Cfg, names[0])
		if err != nil {
			return err
		}
		servers = []schema.Server{s}
	}
	if u.check {
		return cli.Interruptibly(cmd, func(ctx context.Context) error {
			return adding.WriteNewer(ctx, cmd, u.registry, servers, u.asJSON)
		})
	}
	if u.asJSON {
		return errors.New("--json goes with --check")
	}
	var all []adding.Upgrade
	var silent error
	err := cli.Interruptibly(cmd, func(ctx context.Context) error {
		all, silent = adding.Newer(ctx, u.on.ErrOut, u.registry, servers)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		adding.WriteNone(u.on.Out, silent)
	}
	errs := []error{silent}
	for _, upgrade := range all {
		if err := u.update(cmd, upgrade); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", upgrade.Server, err))
		}
	}
	return errors.Join(append(errs, u.on.Out.Err)...)
}

// update starts the newest version of a server, prints how its tools differ, asks, and writes it.
func (u *updater) update(cmd *cobra.Command, up adding.Upgrade) error {
	if up.Err != nil {
		return hint.With(up.Err, "dynmcp add %s --name %s --force asks for what it needs", up.Registry, up.Server)
	}
	out := u.on.Out
	out.Heading(fmt.Sprintf("%s: %s %s → %s", up.Server, up.What, up.Pinned, up.Newest))
	var n int
	err := cli.Interruptibly(cmd, func(ctx context.Context) (err error) {
		n, err = u.compare(ctx, up)
		return err
	})
	if err != nil {
		return err
	}
	if n == 0 {
		out.Printf("Its tools are the same.\n")
	}
	if !u.yes && !cli.Confirmed(cmd, fmt.Sprintf("Write %s %s into the config?", up.What, up.Newest)) {
		out.Printf("Nothing was written; --yes writes it.\n")
		return nil
	}
	return u.write(up)
}

// compare lists both versions of a server, prints how their tools differ, and returns the number of
// tools that do.
func (u *updater) compare(ctx context.Context, up adding.Upgrade) (n int, err error) {
	old, err := conf.ServerNamed(u.on.Cfg, up.Server)
	if err != nil {
		return 0, err
	}
	now := old
	if up.Args != nil {
		now.Args = up.Args
	}
	before, err := u.listed(ctx, old, false)
	if err != nil {
		return 0, err
	}
	after, err := u.listed(ctx, now, true)
	if err != nil {
		return 0, err
	}
	return changes.Show(u.on.Out, before, after), nil
}

// listed returns the tools of a server. It starts the server if start is set or no listing is stored.
func (u *updater) listed(ctx context.Context, s schema.Server, start bool) ([]definition.Tool, error) {
	kept := store.Of(u.on.Cfg, conf.CatalogDir())
	stored, err := kept.Load(s)
	if err != nil || stored == nil || start {
		on := *u.on
		cfg := *u.on.Cfg
		cfg.Servers = []schema.Server{s}
		on.Cfg = &cfg
		if err := warm.WarmNamed(ctx, &on, []string{s.Name}, 0, false); err != nil {
			return nil, err
		}
		if stored, err = kept.Load(s); err != nil || stored == nil {
			return nil, errors.Join(errors.New("nothing is kept of what it lists"), err)
		}
	}
	return changes.ToolsOf(s.Name, stored), nil
}

func (u *updater) write(up adding.Upgrade) error {
	path := u.on.Cfg.Path
	if origin, ok := u.on.Cfg.Origins[up.Server]; ok {
		path = origin.File
	}
	file, unlock, err := editfile.LockConfig(path)
	if err != nil {
		return err
	}
	defer unlock()
	text, err := replace(file.Path, file.Old, up)
	if err != nil {
		return err
	}
	if err := file.Replace(text); err != nil {
		return err
	}
	u.on.Out.Printf("Wrote %s %s into %s\n", up.What, up.Newest, file.Name())
	if s, err := conf.ServerNamed(u.on.Cfg, up.Server); err == nil && approval.Needed(s) != approval.Off {
		u.on.Out.Printf("Its tools are pinned: dynmcp approve %s approves them\n", up.Server)
	}
	return nil
}

// replace returns the config data with the newest version in the server's registry and args.
func replace(name string, data []byte, up adding.Upgrade) ([]byte, error) {
	root, err := (&syntax.Source{Name: name, Data: data}).Parse()
	if err != nil {
		return nil, err
	}
	for _, list := range schema.ServerLists {
		entry := root.Get(list).Get(up.Server)
		if entry == nil {
			continue
		}
		to := map[*syntax.Node]string{}
		if written := entry.Get("registry"); written != nil {
			to[written] = up.Registry
		}
		if words := entry.ItemsOf("args"); len(words) == len(up.Args) {
			for i, word := range words {
				if word.Scalar == up.Before[i] && word.Scalar != up.Args[i] {
					to[word] = up.Args[i]
				}
			}
		}
		return syntax.SetTexts(name, data, root, to)
	}
	return nil, fmt.Errorf("%s has no entry %q", name, up.Server)
}
