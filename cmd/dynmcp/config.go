package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
)

// configFlags say which config is meant, and are the same for every verb.
type configFlags struct {
	config  string
	envFile string
	strict  bool          // a variable that is not set is an error
	expose  []string      // the surfaces, whatever the config says
	read    *schema.Files // by load

	// asWritten leaves references to secrets as they are, for verbs that start nothing: no
	// command is run, and the keyring is not asked.
	asWritten bool

	// pushed has the documents that take the place of read, where the config comes from the
	// cluster; nil is that it is in files.
	pushed <-chan *schema.Files
}

func (f *configFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "config `file` (default: mcp.json or .mcp.json in the working directory)")
	cmd.Flags().StringVarP(&f.envFile, "env", "e", "", "`file` to read variables from instead of .env")
}

// load reads the config that the flags name, or the one it finds, on top of the
// user's; or it loads that of the cluster.
func (f *configFlags) load(ctx context.Context) (*schema.Config, error) {
	if f.pushed == nil {
		paths, err := f.files()
		if err != nil {
			return nil, err
		}
		f.read = schema.ReadFiles(ctx, paths, f.options(ctx))
	}
	return loadFiles(f.read)
}

// options are those of every load of the run. When ctx ends, so do the commands that
// secrets are asked of.
func (f *configFlags) options(ctx context.Context) schema.LoadOptions {
	options := schema.LoadOptions{EnvFile: f.envFile, Strict: f.strict, Expose: f.expose}
	if !f.asWritten {
		options.Secret = func(reference string) (value, problem, hint string) {
			value, err := references.Resolve(ctx, reference)
			if why, ok := errors.AsType[*secretref.Error](err); ok {
				return "", why.What, why.Hint
			}
			return value, "", ""
		}
	}
	return options
}

func loadFiles(files *schema.Files) (*schema.Config, error) {
	cfg, err := files.Load()
	if err == nil {
		disableNested(cfg, selfloop.Above())
		secrets.Add(cfg.Secrets()...)
	}
	return cfg, err
}

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
