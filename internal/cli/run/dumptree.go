package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// treeFlags are the flags for the tree of the config, or the default tree of its servers.
type treeFlags struct {
	ignoreBroken bool
	Dump         bool
}

// offServers returns a line for each server, or source of the tree, that is off.
func offServers(cfg *schema.Config) (off []string) {
	if cfg.Tree != nil {
		return offSources(cfg.Tree)
	}
	for _, s := range cfg.Servers {
		if s.Off != nil {
			off = append(off, fmt.Sprintf("/%s is off: %s; %s", s.Name, s.Off.Why(), s.Off.Hint))
		}
	}
	return off
}

// offSources returns a line for each source at or below a node that is off.
func offSources(n *schema.Node) (off []string) {
	if n.Source != nil && n.Source.Off != nil {
		off = append(off, fmt.Sprintf("%s is off: %s; %s", n.Path, n.Source.Off.Why(), n.Source.Off.Hint))
	}
	for i := range n.Children {
		off = append(off, offSources(&n.Children[i])...)
	}
	return off
}

// DumpTree starts the servers and prints the resolved tree. It returns an error that lists servers
// that are off or do not start, conflicting paths and, unless they are ignored, broken tools.
func DumpTree(ctx context.Context, cfg *schema.Config, flags treeFlags, log *slog.Logger) error {
	if what := schema.LacksSurface(module.SectionsOf(ctx), schema.ExposeTree); what != "" {
		return fmt.Errorf("--dump-tree: %s", what)
	}
	ctx, stop := signal.NotifyContext(ctx, cli.EndSignals(os.Interrupt)...)
	defer stop()
	for _, warning := range cfg.Warnings {
		log.Warn(warning)
	}
	h, err := selfhost.StartAs(ctx, cfg, aggregator.Options{Logger: log, IgnoreBrokenTools: flags.ignoreBroken}, selfhost.HostOptions(log))
	if err != nil {
		return err
	}
	defer h.Close()
	tree := h.Tree()
	wrong := offServers(cfg)
	for name, err := range h.Load(ctx, func(string) {}, tree.Servers(h.View())...) {
		wrong = append(wrong, fmt.Sprintf("%s: %s", name, selfhost.Explain(err, 0).Text))
	}
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	view := h.View()
	conflicts, warnings := tree.Problems(view)
	if !slices.Contains(cfg.Expose, schema.ExposeTree) { // otherwise the aggregator has logged them
		for _, warning := range warnings {
			log.Warn(warning)
		}
	}
	slices.Sort(wrong)
	wrong = append(wrong, conflicts...)
	if !flags.ignoreBroken {
		wrong = append(wrong, tree.Broken(view)...)
	}
	if _, err := os.Stdout.WriteString(tree.Dump(view)); err != nil {
		return err
	}
	if wrong != nil {
		return errors.New("the tree is not whole:\n" + strings.Join(wrong, "\n"))
	}
	return nil
}
