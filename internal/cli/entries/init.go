// Package entries has the verbs that write and show a config: init, add, remove, set, ls.
package entries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

type initFlags struct {
	path    string
	user    bool
	schema  string
	offline bool
	yaml    bool
	force   bool
}

// Init writes a config without servers.
var Init = cli.Verb{
	Use:   "init",
	Group: cli.SetUp,
	Short: "Write a config file without servers",
	Long: `Write a config file without servers. It names the JSON Schema with which editors
complete and check it: that of the release in the repository or, where this dynmcp is
no release or --offline is given, a copy that is written beside the config. An existing file is left alone, unless --force is given; then the old file
is kept with the suffix .bak.`,
	Example: `  dynmcp init
  dynmcp init --yaml
  dynmcp init --user`,
	New: func(cmd *cobra.Command) cli.Run {
		var flags initFlags
		cmd.Flags().StringVar(&flags.path, "path", "", "the `file` to write (default mcp.json, or mcp.yaml with --yaml)")
		cmd.Flags().BoolVar(&flags.user, "user", false, "write your own config, which holds in all directories")
		cmd.Flags().BoolVar(&flags.yaml, "yaml", false, "write YAML; the extension of --path wins")
		cmd.Flags().StringVar(&flags.schema, "schema", "", "the `address` of the schema to name in the file")
		cmd.Flags().BoolVar(&flags.offline, "offline", false, "write the schema beside the config, and name that")
		cmd.Flags().BoolVar(&flags.force, "force", false, "replace an existing file")
		return func(cmd *cobra.Command, _ []string) error {
			return runInit(cmd.Context(), cli.Stdout(cmd), flags)
		}
	},
}

func runInit(ctx context.Context, out *terminal.Writer, flags initFlags) error {
	path, have := cmp.Or(flags.path, "mcp.json"), flags.path
	switch {
	case flags.offline && flags.schema != "":
		return hint.With(errors.New("--offline and --schema exclude each other"), "leave out one of them")
	case flags.user && flags.path != "":
		return hint.With(errors.New("--user and --path exclude each other"), "leave out one of them")
	case flags.user:
		if path, have = conf.NewUser(), conf.FindUser(); path == "" {
			return hint.With(errors.New("there is no home directory for your config"), "name a file with --path")
		}
	case flags.path == "":
		have, _ = conf.Find(".") // "" without one
	}
	if _, owned := hosts.Owner(have); have != "" && !owned {
		path = have // of two configs one would never be read
	} else if flags.yaml && flags.path == "" {
		path = strings.TrimSuffix(path, filepath.Ext(path)) + ".yaml"
	}
	file, err := editfile.Open(path)
	if err != nil {
		return err
	}
	if file.Exists() && !flags.force {
		return hint.With(fmt.Errorf("%s already exists", file.Name()), "add --force to replace it, or add a server to it with dynmcp add")
	}
	address := cmp.Or(flags.schema, editfile.SchemaAddress(cli.Released() && !flags.offline))
	written, err := editfile.WriteSchema(ctx, file.Path, address, flags.force)
	if err != nil {
		return err
	}
	if err := file.Write(editfile.EmptyConfig(path, address, flags.yaml)); err != nil {
		return err
	}
	out.Printf("Wrote %s\n", file.Name())
	if written != "" {
		out.Printf("Wrote %s\n", written)
	}
	out.Printf("Add a server with: dynmcp add NAME -- COMMAND ARGS…\n")
	return out.Err
}

// Create creates a config if there is none, for users who never see a command line, such as users
// of a host's extension. Its only server is lazy; its description tells the model where servers
// are added.
func Create(ctx context.Context, path string, log *slog.Logger) error {
	if path == "" {
		return hint.With(errors.New("--create needs to be told where"), "name the file with -c")
	}
	file, err := editfile.Open(path)
	if err != nil || file.Exists() {
		return err
	}
	address := editfile.SchemaAddress(cli.Released())
	text, err := schema.SetServer(file.Path, editfile.EmptyConfig(file.Path, address, false), schema.Server{
		Name:        "example",
		Description: "Echo, and other tools to try. This is an example: servers of your own are added to " + file.Path + ", which is read at once.",
		Command:     "npx",
		Args:        []string{"-y", "@modelcontextprotocol/server-everything", "stdio"},
	})
	if err != nil {
		return err
	}
	if _, err := editfile.WriteSchema(ctx, file.Path, address, false); err != nil {
		return err
	}
	if err := file.Write(text); err != nil {
		return err
	}
	log.Info("wrote a config with an example", "file", file.Path)
	return nil
}
