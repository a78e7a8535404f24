// Package conf finds and loads the config of a verb, and locates dynmcp's state of the user.
package conf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// Flags select the config, and are the same for every verb.
type Flags struct {
	Config  string
	EnvFile string
	Strict  bool          // an undefined variable is an error
	expose  []string      // surfaces that replace those of the config; nil for none
	Profile string        // "" if the flag is unset
	chosen  bool          // the environment and the working directory may select a profile
	Only    []string      // the servers whose references to secrets are resolved; nil for all
	Read    *schema.Files // set by Load

	// AsWritten leaves references to secrets unresolved, for verbs that start nothing: no command is
	// run, and the keyring is not used.
	AsWritten bool

	// Pushed yields new versions of the config of a cluster. It is nil if the config is in files.
	Pushed <-chan *schema.Files
}

// ConfigUsage is the help of --config.
const ConfigUsage = "config `file` (default: that of the working directory, such as mcp.json, over that of the user)"

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.Config, "config", "c", "", ConfigUsage)
	cmd.Flags().StringVarP(&f.EnvFile, "env-file", "e", "", "`file` to read variables from instead of .env")
	cli.AddOld(cmd, "env-file", "env")
	f.addProfile(cmd)
}

// Load loads the named config, or the one that it finds, merged with the user's. In a cluster it
// loads Read.
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
	if err == nil {
		cfg.ProfileBy = by
	}
	return cfg, unknownProfile(err, by)
}

// Options returns the options of every load of the run. When ctx ends, commands that print secrets
// are killed.
func (f *Flags) Options(ctx context.Context) schema.LoadOptions {
	options := module.Load(ctx)
	options.EnvFile, options.Strict, options.Lenient, options.Expose, options.Only = f.EnvFile, f.Strict, !f.Strict, f.expose, f.Only
	name, _, _ := f.profile(ctx) // Load reports its error
	options.Select = func(cfg *schema.Config) (*schema.Config, error) {
		return profile.Select(cfg, cmp.Or(f.Profile, name, cfg.Profile)) // Use may change it during a run
	}
	if !f.AsWritten {
		schemes := module.SchemesOf(ctx)
		options.Secret = func(reference string) (value, problem, hint string) {
			value, err := References.Resolve(ctx, schemes, reference)
			if why, ok := errors.AsType[*secretref.Error](err); ok {
				return "", why.What, why.Hint
			}
			return value, "", ""
		}
	}
	return options
}

// LoadFiles loads a config from files that were read, and disables servers that would run it again.
func LoadFiles(files *schema.Files) (*schema.Config, error) {
	cfg, err := files.Load()
	if err == nil {
		disableNested(cfg, selfloop.Above())
		cli.Secrets.Add(cfg.Secrets()...)
	}
	return cfg, err
}

// Files returns the paths of the config files, in the order of precedence: the named file or else
// that of the project, and that of the user.
func (f *Flags) Files() ([]string, error) {
	near, err := Choice{Config: f.Config}.File()
	if err != nil {
		if h, file := hosts.InDirectory(); file != "" {
			err = hint.With(err, "dynmcp import %s takes the servers of %s over", h.Name, file)
		}
		return nil, err
	}
	user := FindUser()
	if user == "" || hosts.SameFile(near, user) {
		return []string{near}, nil
	}
	return []string{near, user}, nil
}

// Watched returns the absolute paths of the config files to watch, because the working directory may
// be renamed. It returns none if the config comes from the cluster.
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

// Written returns the servers of a config file with references to variables as written.
func Written(ctx context.Context, config string) ([]schema.Server, error) {
	data, err := regular.Read(ctx, config, regular.Large)
	if err != nil {
		return nil, err
	}
	return schema.Written(config, data, module.SectionsOf(ctx))
}

// References resolves the references to secrets in configs. It caches secrets for the run.
var References = secretref.Resolver{Hide: &cli.Secrets}

// LoadOrWrap loads the config that from selects or, if wrap is set, makes one for the command in
// args. expose, unless nil, replaces the surfaces of the config.
func LoadOrWrap(ctx context.Context, from *Flags, wrap bool, args, expose []string) (*schema.Config, error) {
	if err := checkSurfaces(ctx, expose); err != nil {
		return nil, err
	}
	switch {
	case !wrap:
		from.expose = expose
		return from.Load(ctx)
	case len(args) == 0:
		return nil, hint.With(errors.New("no command was given after --"),
			"dynmcp -- npx -y @modelcontextprotocol/server-everything stdio")
	case from.Config != "":
		return nil, hint.With(errors.New("a config file and a command after -- exclude each other"), "leave out one of them")
	}
	if from.Profile != "" {
		return nil, hint.With(errors.New("a profile and a command after -- exclude each other"), "leave out one of them")
	}
	cfg := schema.Single(args[0], args[1:])
	if expose != nil {
		cfg.Expose = expose
		if cfg.ExposesScripts() {
			cfg.Catalog.Definitions = schema.DefinitionsTypes
		}
	}
	return cfg, nil
}

func checkSurfaces(ctx context.Context, expose []string) error {
	sections := module.SectionsOf(ctx)
	known := schema.SurfacesOf(sections)
	for _, surface := range expose {
		if !slices.Contains(known, surface) {
			if what := schema.LacksSurface(sections, surface); what != "" {
				return hint.With(fmt.Errorf("--expose: %s: %s", surface, what), "use a build with it, or name another surface")
			}
			err := fmt.Errorf("--expose: unknown surface %q", surface)
			if near := nearest.Word(surface, known); near != "" {
				return hint.With(err, "did you mean %s?", near)
			}
			return hint.With(err, "there are %s", strings.Join(known, ", "))
		}
	}
	if err := schema.CheckExpose(expose); err != nil {
		return hint.With(fmt.Errorf("--expose: %w", err), "leave out one of them")
	}
	return nil
}
