package conf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// CompleteServers completes the names of the config's servers, and appends suffix to them.
func CompleteServers(t *Flags, suffix string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		listed := *t
		listed.AsWritten = true
		cfg, err := listed.Load(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, s := range cfg.Servers {
			words = append(words, cobra.CompletionWithDesc(s.Name+suffix, s.Description))
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if suffix != "" {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return words, directive
	}
}

// Endpoint returns the command line or address of a server, without possible secrets.
func Endpoint(s schema.Server) string {
	s = s.ReplaceSecrets(func(schema.SecretUse) string { return redact.Mark })
	if s.Transport != schema.Stdio {
		return s.Address()
	}
	return shellescape.QuoteCommand(append([]string{s.Command}, s.Args...))
}

// Relative makes the path of a file below the working directory relative.
func Relative(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if below, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(below) {
		return below
	}
	return path
}

// Enabled returns the enabled servers.
func Enabled(cfg *schema.Config) []schema.Server {
	return slices.DeleteFunc(slices.Clone(cfg.Servers), func(s schema.Server) bool { return s.Disabled })
}

// Wanted returns the enabled servers, and those that are off.
func Wanted(cfg *schema.Config) []schema.Server {
	return slices.DeleteFunc(slices.Clone(cfg.Servers), func(s schema.Server) bool { return s.Disabled && s.Off == nil })
}

// Named returns the servers called names or, if names is empty, the wanted servers.
func Named(cfg *schema.Config, names []string) (servers []schema.Server, err error) {
	if len(names) == 0 {
		return Wanted(cfg), nil
	}
	for _, name := range names {
		s, err := ServerNamed(cfg, name)
		if err != nil {
			return nil, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// SayIfEmpty prints how to add a server to a config that has none.
func SayIfEmpty(errOut *terminal.Writer, cfg *schema.Config) {
	if cfg.Empty() && cfg.Profile == "" {
		errOut.Say("%s", schema.NoServers)
	}
}

// Usable returns the server of the config called name, unless it is off.
func Usable(cfg *schema.Config, name string) (schema.Server, error) {
	s, err := ServerNamed(cfg, name)
	if err == nil && s.Off != nil {
		err = OffError(s)
	}
	return s, err
}

// OffError returns the error of a server that is off.
func OffError(s schema.Server) error {
	return hint.With(fmt.Errorf("%s is off: %s", s.Name, s.Off.Why()), "%s", s.Off.Hint)
}

// Names returns the names of servers.
func Names(servers []schema.Server) []string {
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

// maxListed limits the names in an error.
const maxListed = 10

// ServerNamed returns the server of the config called name.
func ServerNamed(cfg *schema.Config, name string) (schema.Server, error) {
	for _, s := range cfg.Servers {
		if s.Name == name {
			return s, nil
		}
	}
	err := cli.MessageError(fmt.Sprintf("Unknown server %q", name))
	if len(cfg.Servers) == 0 {
		return schema.Server{}, hint.With(err, schema.NoServers)
	}
	all, where := Names(cfg.Servers), "the config"
	if cfg.Profile != "" {
		where = "the profile " + cfg.Profile
		if _, outside := cfg.Origins[name]; outside {
			by := ""
			if cfg.ProfileBy != "" {
				by = " (" + cfg.ProfileBy + ")"
			}
			err = cli.MessageError(name + " is not in " + where + by)
			return schema.Server{}, hint.With(err, "--profile all takes all servers; --profile NAME takes those of another profile")
		}
	}
	if near := nearest.Word(name, all); near != "" {
		return schema.Server{}, hint.With(err, "did you mean %s? dynmcp ls lists them all", near)
	}
	if len(all) > maxListed {
		return schema.Server{}, hint.With(err, "%s has %d servers; dynmcp ls lists them", where, len(all))
	}
	return schema.Server{}, hint.With(err, "%s has: %s", where, strings.Join(all, ", "))
}

// Unlimited says which limits of a server's program this system cannot enforce, "" if it can, and whether the
// server is started all the same.
func Unlimited(ctx context.Context, s schema.Server) (text string, starts bool) {
	if l := module.LauncherOf(ctx); l != nil {
		return l.Warning(s)
	}
	return "", false
}
