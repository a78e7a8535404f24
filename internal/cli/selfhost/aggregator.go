package selfhost

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// NewAggregator is aggregator.New with the options of this program. It fails if a run above serves
// the config already, and tells the config's servers about this run; see package selfloop. Of
// opts.Launcher it takes the Loop of a Launcher. parts are
// what the modules of ctx do in the run. run says for whom it is; its Config and Log
// are set here.
func NewAggregator(ctx context.Context, cfg *schema.Config, opts aggregator.Options, run module.Run) (agg *aggregator.Aggregator, parts Parts, err error) {
	name := cfg.Path
	if cfg.SingleWrap {
		name = "dynmcp -- " + strings.Join(append([]string{cfg.Servers[0].Command}, cfg.Servers[0].Args...), " ")
	}
	chain, err := selfloop.Enter(name, digestOf(cfg))
	if err != nil {
		return nil, nil, err
	}
	l, _ := opts.Launcher.(Launcher)
	l.chain = chain
	opts.Launcher = l
	opts.Version = cli.Version
	opts.Redact = &cli.Secrets
	if opts.Logins == nil {
		opts.Logins = login.Of(login.Store, opts.Logger)
	}
	opts.Adapter, opts.Surfaces = module.AdapterOf(ctx), module.SurfacesOf(ctx)
	opts.StoreDir, opts.Approvals = conf.CatalogDir(), module.TrustOf(ctx)
	run.Config, run.Log = cfg, opts.Logger
	run.Logins, _ = opts.Logins.(module.Logins)
	if parts, err = startParts(ctx, run); err != nil {
		return nil, nil, err
	}
	opts.Observe = append(opts.Observe, parts.observers()...)
	opts.Extensions = parts.extensions()
	if agg, err = aggregator.New(cfg, opts); err != nil {
		parts.end()
	}
	return agg, parts, err
}

// A Launcher tells servers which runs are above them. It implements aggregator.Launcher.
type Launcher struct {
	Loop  *selfloop.Gateway // of a run that serves HTTP; nil for any other
	chain selfloop.Chain
}

// Env returns the chain of runs above a server.
func (l Launcher) Env(cfg *schema.Config, server string) []string {
	return []string{l.chain.Env(server, conf.ConfigsNamed(cfg))}
}

// Mark marks a request as one of this gateway and of those above it.
func (l Launcher) Mark(server string, h http.Header) {
	if l.Loop != nil {
		l.Loop.Mark(server, h)
	}
}

// digestOf returns a hash of the servers that a config starts, without their variables and headers.
func digestOf(cfg *schema.Config) string {
	h := sha256.New()
	for _, s := range cfg.Servers {
		line, err := json.Marshal([]any{s.Name, s.Transport, s.Command, s.Args, s.Cwd, s.URL, s.OpenAPI})
		if err != nil {
			line = []byte(s.Name)
		}
		h.Write(append(line, '\n'))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
