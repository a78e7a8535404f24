package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
)

// files returns the config files that are read, the nearest first: the one that
// was named or else the project's, and the user's.
func (f *configFlags) files() ([]string, error) {
	user := schema.FindUser()
	near := f.config
	if near == "" {
		found, err := schema.Find(".")
		switch {
		case err == nil:
			near = found
		case user != "":
			return []string{user}, nil
		default:
			return nil, err
		}
	}
	if user == "" || hosts.SameFile(near, user) {
		return []string{near}, nil
	}
	return []string{near, user}, nil
}

// watched returns the absolute paths of the config files that are read: the working
// directory may be moved. There are none where the config comes from the cluster.
func (f *configFlags) watched() ([]string, error) {
	if f.pushed != nil {
		return nil, nil
	}
	paths, err := f.files()
	for i := 0; i < len(paths) && err == nil; i++ {
		paths[i], err = filepath.Abs(paths[i])
	}
	return paths, err
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
