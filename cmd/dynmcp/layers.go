package main

import (
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
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

// disableSelf disables servers that are this very run again. A project's .mcp.json
// often is the host's file too, and has dynmcp as its one server: read as a config,
// it would start dynmcp without end.
func disableSelf(cfg *schema.Config) {
	for i, s := range cfg.Servers {
		if s.Disabled || !startsItself(s, cfg.Path) {
			continue
		}
		cfg.Servers[i].Disabled = true
		cfg.Warnings = append(cfg.Warnings, cfg.Origins[s.Name].File+": "+s.Name+": this server is dynmcp with this very config and is left out")
	}
}

// startsItself reports whether a server is dynmcp with the config at path: named
// in its arguments, or found because none is.
func startsItself(s schema.Server, path string) bool {
	args, ok := hosts.DynmcpArgs(s.Command, s.Args)
	if s.Transport != schema.Stdio || !ok {
		return false
	}
	for i, arg := range args {
		config, joined := strings.CutPrefix(arg, "--config=")
		if (arg == "-c" || arg == "--config") && i+1 < len(args) {
			config, joined = args[i+1], true
		}
		if joined {
			return hosts.SameFile(config, path)
		}
	}
	return true
}
