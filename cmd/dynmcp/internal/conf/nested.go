package conf

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// disableNested disables servers that would run this config again, or a dynmcp that the runs above
// refuse. A project's .mcp.json often is the host's file too, with dynmcp as its only server: read as
// a config, it would start dynmcp endlessly. Of configs that name each other, which the runs above
// cannot detect, only a few are served.
func disableNested(cfg *schema.Config, above selfloop.Chain) {
	few := above.Room()
	found := nested(cfg) // once: each server's program is looked for on PATH
	left := slices.DeleteFunc(found, func(n nestedRun) bool {
		why := refusal(cfg, n.config, above)
		if why != "" {
			leaveOut(cfg, n.server, why)
			few = 0 // this one counts
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
	config string // that it is known to serve, or ""
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

// refusal returns why a server may not run dynmcp with a config, "" if it may.
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

// namesOneOf reports whether a server in a config runs dynmcp with another one of the given configs.
func namesOneOf(config string, others []string) bool {
	data, err := regular.Read(context.Background(), config, syntax.MaxSize)
	if err != nil {
		return false // its own run reports it
	}
	servers, err := schema.Written(config, data)
	return err == nil && slices.ContainsFunc(servers, func(s schema.Server) bool {
		named, _ := configNamed(s)
		return named != "" && !s.Disabled && !hosts.SameFile(named, config) &&
			slices.ContainsFunc(others, func(other string) bool { return hosts.SameFile(named, other) })
	})
}

// ConfigsNamed returns the configs that enabled servers are known to serve.
func ConfigsNamed(cfg *schema.Config) []string { return configsOf(nested(cfg)) }

// configNamed reports whether a server runs dynmcp with a config, and returns the config's
// absolute path: from the arguments, or found in the server's own directory. Otherwise it is "",
// because the server would find the config of this run.
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
		config, _ = schema.Find(s.Cwd) // "" if absent
	}
	return config, true
}
