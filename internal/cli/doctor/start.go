package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/costs"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// startAll starts every server: first the eager ones, to measure what a host is shown at its
// start, and then the lazy ones.
func (d *doctor) startAll(ctx context.Context) {
	servers := conf.Enabled(d.Cfg)
	if len(servers) == 0 {
		return
	}
	waiting, ready := terminal.ShowStarting(d.ErrOut, conf.Names(servers))
	defer waiting.End()
	if d.Cfg.SingleWrap && d.hasProblem(aboutCommands, servers[0].Name) {
		return
	}
	h, err := selfhost.Start(ctx, d.Cfg, d.Log)
	if err != nil {
		only := ""
		if d.Cfg.SingleWrap {
			only = servers[0].Name
		}
		d.addError(aboutServers, only, err)
		return
	}
	defer h.Close()
	eager := slices.DeleteFunc(slices.Clone(servers), schema.Server.Lazy)
	lazy := slices.DeleteFunc(slices.Clone(servers), func(s schema.Server) bool { return !s.Lazy() })
	failed := d.startServers(ctx, h, ready, eager)
	tools, err := h.Conn.Call(ctx, "tools/list", nil)
	if err != nil {
		d.addError(aboutServers, "", cli.Interrupted(err))
		return
	}
	maps.Copy(failed, d.startServers(ctx, h, ready, lazy))
	d.reportStarted(ctx, h.View(), servers, failed)
	d.Host = costs.CountDefinitions(h.View(), tools, h.Conn.ServerInfo().Instructions)
}

// reportStarted reports which servers started, and warnings about their tools.
func (d *doctor) reportStarted(ctx context.Context, view *catalog.View, servers []schema.Server, failed map[string]error) {
	for _, s := range servers {
		switch err := failed[s.Name]; {
		case err == nil:
			status, _ := view.Server(s.Name)
			text := "starts, has " + display.Plural(status.Tools, "tool")
			if status.Denied > 0 {
				text += fmt.Sprintf(" (%d more hidden by the policy)", status.Denied)
			}
			d.add(finding{Check: aboutServers, Level: fine, Server: s.Name, Text: text})
		case !d.hasProblem(aboutCommands, s.Name):
			d.addError(aboutServers, s.Name, err)
		}
	}
	for _, w := range slices.Concat(view.Collisions(), view.Warnings(), module.LinterOf(ctx, d.Cfg).Lint(view, d.Verbose())) {
		d.add(finding{Check: aboutServers, Level: warning, Text: w})
	}
}

func (d *doctor) startServers(ctx context.Context, h *selfhost.Host, ready func(string), servers []schema.Server) (failed map[string]error) {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	return h.Load(ctx, ready, conf.Names(servers)...)
}
