package selfhost

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
)

// NewAggregator is aggregator.New with the options of this program. It fails if a run above serves
// the config already, and tells the config's servers about this run; see package selfloop. recordAs
// changes the recording of calls to the settings of another config. After an error of recordAs the
// settings are unchanged.
func NewAggregator(cfg *schema.Config, opts aggregator.Options) (agg *aggregator.Aggregator, recordAs func(*schema.Config) error, err error) {
	name := cfg.Path
	if cfg.SingleWrap {
		name = "dynmcp -- " + strings.Join(append([]string{cfg.Servers[0].Command}, cfg.Servers[0].Args...), " ")
	}
	chain, err := selfloop.Enter(name, digestOf(cfg))
	if err != nil {
		return nil, nil, err
	}
	opts.ChildEnv = func(cfg *schema.Config, server string) []string {
		return []string{chain.Env(server, conf.ConfigsNamed(cfg))}
	}
	opts.Version = cli.Version
	opts.Redact = &cli.Secrets
	if opts.Logins == nil {
		opts.Logins = login.Of(login.Store, opts.Logger)
	}
	opts.StoreDir, opts.Definitions, opts.Package = conf.CatalogDir(), conf.DefinitionsDir(), conf.Running
	recorder, err := record.New(cfg, opts.Logger)
	if err != nil {
		return nil, nil, err
	}
	opts.Observe = append(opts.Observe, recorder)
	if agg, err = aggregator.New(cfg, opts); err != nil {
		recorder.End()
	}
	return agg, recorder.Follow, err
}

// digestOf returns a hash of the servers that a config starts, without their variables and headers.
func digestOf(cfg *schema.Config) string {
	h := sha256.New()
	for _, s := range cfg.Servers {
		line, err := json.Marshal([]any{s.Name, s.Transport, s.Command, s.Args, s.Cwd, s.URL})
		if err != nil {
			line = []byte(s.Name)
		}
		h.Write(append(line, '\n'))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
