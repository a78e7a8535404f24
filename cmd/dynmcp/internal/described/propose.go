package described

import (
	"context"
	"path/filepath"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/conf"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/selfhost"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/schema"
)

// Propose starts servers once, as entries of a config in dir, and returns proposed descriptions and
// the errors of servers that did not start, by name.
func Propose(ctx context.Context, dir string, servers []schema.Server, errOut *terminal.Writer) (proposals map[string]string, failed map[string]error, err error) {
	if len(servers) == 0 {
		return nil, nil, nil
	}
	text := []byte("{}")
	for _, s := range servers {
		if text, err = schema.SetServer("servers.json", text, s); err != nil {
			return nil, nil, err
		}
	}
	cfg, err := schema.LoadText(filepath.Join(dir, "servers.json"), text, schema.LoadOptions{})
	if err != nil {
		return nil, nil, err
	}
	cli.Secrets.Add(cfg.Secrets()...)
	on := selfhost.Target{Cfg: cfg, ErrOut: errOut}
	h, failed, err := on.Start(ctx, conf.Names(servers)...)
	if err != nil {
		return nil, nil, err
	}
	defer h.Close()
	if err := context.Cause(ctx); err != nil {
		return nil, nil, cli.Interrupted(err)
	}
	proposals = map[string]string{}
	for _, s := range servers {
		if failed[s.Name] == nil {
			proposals[s.Name] = h.View().Texts().Proposal(s.Name, packages.Description(ctx, s.Command, s.Args))
		}
	}
	return proposals, failed, nil
}
