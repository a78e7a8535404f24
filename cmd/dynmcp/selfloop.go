package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
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

// disableNested disables servers that are this very run again, or a dynmcp that the
// chain of runs above refuses. A project's .mcp.json often is the host's file too, and has
// dynmcp as its one server: read as a config, it would start dynmcp without end.
func disableNested(cfg *schema.Config, above selfloop.Chain) {
	for i, s := range cfg.Servers {
		config, ok := configNamed(s)
		if s.Disabled || !ok {
			continue
		}
		why := "with this very config"
		if config != "" && !hosts.SameFile(config, cfg.Path) {
			why = above.Refuse(config, hosts.SameFile)
		}
		if why != "" {
			cfg.Servers[i].Disabled = true
			cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: %s: this server is dynmcp %s and is left out", cfg.Origins[s.Name].File, s.Name, why))
		}
	}
}

// configsNamed returns the configs that enabled servers are known to serve.
func configsNamed(cfg *schema.Config) (paths []string) {
	for _, s := range cfg.Servers {
		if config, _ := configNamed(s); config != "" && !s.Disabled {
			paths = append(paths, config)
		}
	}
	return paths
}

// configNamed reports whether a server is dynmcp with a config, and returns its absolute
// path: named in the arguments, or found in the server's own directory. It is "" where
// neither is so: what is found then is what this run was started with.
func configNamed(s schema.Server) (config string, ok bool) {
	args, ok := hosts.DynmcpArgs(s.Command, s.Args)
	if s.Transport != schema.Stdio || !ok {
		return "", false
	}
	for i, arg := range args {
		named, joined := strings.CutPrefix(arg, "--config=")
		if (arg == "-c" || arg == "--config") && i+1 < len(args) {
			named, joined = args[i+1], true
		}
		if !joined {
			continue
		}
		if !filepath.IsAbs(named) {
			named = filepath.Join(s.Cwd, named)
		}
		if path, err := filepath.Abs(named); err == nil {
			named = path
		}
		return named, true
	}
	if s.Cwd != "" {
		config, _ = schema.Find(s.Cwd) // "" if there is none
	}
	return config, true
}
