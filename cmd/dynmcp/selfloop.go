package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
)

// newAggregator is aggregator.New for a config that must not reach itself: the
// servers it starts know what is served above them. See package selfloop.
func newAggregator(cfg *schema.Config, opts aggregator.Options) (*aggregator.Aggregator, error) {
	name := cfg.Path
	if cfg.SingleWrap {
		name = "dynmcp -- " + strings.Join(append([]string{cfg.Servers[0].Command}, cfg.Servers[0].Args...), " ")
	}
	chain, err := selfloop.Enter(name, digestOf(cfg))
	if err != nil {
		return nil, err
	}
	opts.ChildEnv = func(cfg *schema.Config, server string) []string {
		return []string{chain.Env(server, configsNamed(cfg))}
	}
	opts.Version = version
	opts.Redact = &secrets
	if opts.Login == nil {
		opts.Login, opts.LogIn = loginsOf(loginStore, opts.Logger), offeredLogin(loginStore, opts.Logger)
	}
	opts.StoreDir = catalogDir()
	return aggregator.New(cfg, opts)
}

// newLoopGateway returns how a run over HTTP recognizes its own requests: its own marks or,
// in a cluster, those of all replicas. keys are those of the cluster, nil without one.
func newLoopGateway(cfg *schema.Config, keys *seal.Keys) (*selfloop.Gateway, error) {
	if keys == nil {
		return selfloop.NewGateway(cfg.Path, rand.Text()), nil
	}
	secrets, err := keys.Derive("lineage", seal.MinSecret)
	if err != nil {
		return nil, err
	}
	return selfloop.NewGateway(cfg.Path, string(secrets[0])), nil
}

// digestOf stands for what a config starts, wherever it was read from. Secrets
// have no part in it.
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
