package main

import (
	"context"
	"maps"
	"slices"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// startAll starts every server, in two steps: those that are there at the start of
// a session, whose cost is measured, and then the lazy ones.
func (d *doctor) startAll(ctx context.Context) {
	servers := enabled(d.cfg)
	if len(servers) == 0 {
		return
	}
	waiting, ready := terminal.ShowStarting(d.errOut, names(servers))
	defer waiting.End()
	if d.cfg.SingleWrap && d.hasProblem(aboutCommands, servers[0].Name) {
		return
	}
	h, err := startSelf(ctx, d.cfg, d.log)
	if err != nil {
		only := ""
		if d.cfg.SingleWrap {
			only = servers[0].Name
		}
		d.addError(aboutServers, only, err)
		return
	}
	defer h.close()
	var eager, lazy []schema.Server
	for _, s := range servers {
		if s.Lazy() {
			lazy = append(lazy, s)
		} else {
			eager = append(eager, s)
		}
	}
	failed := d.startServers(ctx, h, ready, eager)
	tools, err := h.conn.Call(ctx, "tools/list", nil)
	if err != nil {
		d.addError(aboutServers, "", interrupted(err))
		return
	}
	maps.Copy(failed, d.startServers(ctx, h, ready, lazy))

	view := h.agg.View()
	for _, s := range servers {
		switch err := failed[s.Name]; {
		case err == nil:
			status, _ := view.Server(s.Name)
			d.add(finding{Check: aboutServers, Level: fine, Server: s.Name, Text: "starts, has " + count(status.Tools, "tool")})
		case !d.hasProblem(aboutCommands, s.Name):
			d.addError(aboutServers, s.Name, err)
		}
	}
	for _, w := range slices.Concat(view.Collisions(), view.Warnings()) {
		d.add(finding{Check: aboutServers, Level: warning, Text: w})
	}
	d.Host = countDefinitions(view, tools, h.conn.ServerInfo().Instructions)
}

func (d *doctor) startServers(ctx context.Context, h *selfHost, ready func(string), servers []schema.Server) (failed map[string]error) {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	return h.load(ctx, ready, names(servers)...)
}
