package conf

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// disableNested disables servers that would run dynmcp with this config, or with a config that a run
// above serves. A project's .mcp.json often is the host's file too, with dynmcp as its only server;
// read as a config, it would start dynmcp endlessly. The runs above cannot detect a cycle of configs
// that starts here, so only a few servers with such configs are kept.
func disableNested(cfg *schema.Config, above selfloop.Chain) {
	few := above.Room()
	found := nested(cfg) // slow, because it looks for each program on PATH
	left := slices.DeleteFunc(found, func(n nestedRun) bool {
		why := refusal(cfg, n.config, above)
		if why != "" {
			leaveOut(cfg, n.server, why)
			few = 0 // there is a cycle: keep no other part of it
		}
		return why != ""
	})
	others := append(configsOf(left), cfg.Path)
	for _, n := range left {
		if n.config == "" || !namesOneOf(n.config, others) {
			continue
		}
		if few--; few < 0 {
			leaveOut(cfg, n.server, fmt.Sprintf("with one of more than %d configs that name each other", selfloop.MaxDepth))
		}
	}
}

// A nestedRun is an enabled server that runs dynmcp.
type nestedRun struct {
	server int    // index in the config
	config string // path of its config, or "" if it finds one by itself
}

func nested(cfg *schema.Config) (found []nestedRun) {
	for i, s := range cfg.Servers {
		if s.Disabled {
			continue
		}
		if config, ok := configNamed(s); ok {
			found = append(found, nestedRun{i, config})
		}
	}
	return found
}

func configsOf(runs []nestedRun) (paths []string) {
	for _, n := range runs {
		if n.config != "" {
			paths = append(paths, n.config)
		}
	}
	return paths
}

// refusal returns the reason why a server may not run dynmcp with config, or "".
func refusal(cfg *schema.Config, config string, above selfloop.Chain) string {
	if config == "" || hosts.SameFile(config, cfg.Path) {
		return "with this very config"
	}
	return above.Refuse(config, hosts.SameFile)
}

func leaveOut(cfg *schema.Config, i int, why string) {
	s := &cfg.Servers[i]
	s.Disabled = true
	cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: %s: this server is dynmcp %s and is left out", cfg.Origins[s.Name].File, s.Name, why))
}

// namesOneOf reports whether an enabled server in a config runs dynmcp with one of others.
func namesOneOf(config string, others []string) bool {
	data, err := regular.Read(context.Background(), config, syntax.MaxSize)
	if err != nil {
		return false // the run of that config reports it
	}
	servers, err := schema.Written(config, data, nil)
	return err == nil && slices.ContainsFunc(servers, func(s schema.Server) bool {
		named, _ := configNamed(s)
		return named != "" && !s.Disabled && !hosts.SameFile(named, config) &&
			slices.ContainsFunc(others, func(other string) bool { return hosts.SameFile(named, other) })
	})
}

// ConfigsNamed returns the known configs of enabled servers that run dynmcp.
func ConfigsNamed(cfg *schema.Config) []string { return configsOf(nested(cfg)) }

// configNamed reports whether a server runs dynmcp with a config, and returns the absolute path of
// the config, from the arguments or found in the server's cwd. Otherwise the path is "", and the
// server would find the config of this run.
func configNamed(s schema.Server) (config string, ok bool) {
	if s.Transport != schema.Stdio {
		return "", false
	}
	args, ok := hosts.DynmcpArgs(s.Command, s.Args)
	if !ok {
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
		config, _ = Find(s.Cwd) // "" if absent
	}
	return config, true
}
