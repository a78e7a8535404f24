// Package conf finds and loads the config of a verb, and locates dynmcp's state of the user.
package conf

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// Flags select the config, and are the same for every verb.
type Flags struct {
	Config  string
	EnvFile string
	Strict  bool          // an undefined variable is an error
	expose  []string      // the surfaces, overriding the config
	Profile string        // the profile; "" selects it elsewhere
	chosen  bool          // the environment and the working directory may select one
	Only    []string      // the only servers whose references to secrets are resolved; nil is all
	Read    *schema.Files // by load

	// AsWritten leaves references to secrets unresolved, for verbs that start nothing: no command is
	// run, and the keyring is not used.
	AsWritten bool

	// Pushed yields documents that replace Read, if the config comes from the cluster; nil if it is in
	// files.
	Pushed <-chan *schema.Files
}

// ConfigUsage is the help of --config.
const ConfigUsage = "config `file` (default: that of the working directory, such as mcp.json, over that of the user)"

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.Config, "config", "c", "", ConfigUsage)
	cmd.Flags().StringVarP(&f.EnvFile, "env", "e", "", "`file` to read variables from instead of .env")
	f.addProfile(cmd)
}

// Load loads the config that the flags name, or the one it finds, merged with the user's; or that of
// the cluster.
func (f *Flags) Load(ctx context.Context) (*schema.Config, error) {
	_, by, err := f.profile(ctx)
	if err != nil {
		return nil, err
	}
	if f.Pushed == nil {
		paths, err := f.Files()
		if err != nil {
			return nil, err
		}
		f.Read = schema.ReadFiles(ctx, paths, f.Options(ctx))
	}
	cfg, err := LoadFiles(f.Read)
	return cfg, unknownProfile(err, by)
}

// Options returns the options of every load of the run. When ctx ends, so do the commands for
// secrets.
func (f *Flags) Options(ctx context.Context) schema.LoadOptions {
	options := schema.LoadOptions{EnvFile: f.EnvFile, Strict: f.Strict, Expose: f.expose, Only: f.Only}
	name, _, _ := f.profile(ctx) // Load reports its error
	options.Select = func(cfg *schema.Config) (*schema.Config, error) {
		return profile.Select(cfg, cmp.Or(f.Profile, name, cfg.Profile)) // Use may change it during a run
	}
	if !f.AsWritten {
		options.Secret = func(reference string) (value, problem, hint string) {
			value, err := References.Resolve(ctx, reference)
			if why, ok := errors.AsType[*secretref.Error](err); ok {
				return "", why.What, why.Hint
			}
			return value, "", ""
		}
	}
	return options
}

// LoadFiles loads a config from files that were read, without servers that would run it again.
func LoadFiles(files *schema.Files) (*schema.Config, error) {
	cfg, err := files.Load()
	if err == nil {
		disableNested(cfg, selfloop.Above())
		cli.Secrets.Add(cfg.Secrets()...)
	}
	return cfg, err
}

// Files returns the config files that are read, the nearest first: the named one or else the
// project's, and the user's.
func (f *Flags) Files() ([]string, error) {
	user := schema.FindUser()
	near := f.Config
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

// Watched returns the absolute paths of the config files, because the working directory may be moved.
// There are none if the config comes from the cluster.
func (f *Flags) Watched() ([]string, error) {
	if f.Pushed != nil {
		return nil, nil
	}
	paths, err := f.Files()
	for i := 0; i < len(paths) && err == nil; i++ {
		paths[i], err = filepath.Abs(paths[i])
	}
	return paths, err
}

// Written returns the servers of a config as written, without values of variables.
func Written(config string) ([]schema.Server, error) {
	data, err := regular.Read(context.Background(), config, regular.Large)
	if err != nil {
		return nil, err
	}
	return schema.Written(config, data)
}

// References resolves the references to secrets in configs. It caches secrets for the run.
var References = secretref.Resolver{Hide: &cli.Secrets}
