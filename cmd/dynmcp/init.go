package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/schema"
)

// schemaFile is the name of the schema beside the config, with --offline.
const schemaFile = "dynmcp.schema.json"

// initFlags are the flags of init.
type initFlags struct {
	path    string
	schema  string
	offline bool
	yaml    bool
	force   bool
}

func initCommand() *cobra.Command {
	var flags initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a config file without servers",
		Long: `Write a config file without servers. It names the JSON Schema with which editors
complete and check it; --offline writes that beside it too, for editors without a
network. An existing file is left alone, unless --force is given; then the old file
is kept with the suffix .bak.`,
		Example: `  dynmcp init
  dynmcp init --yaml
  dynmcp init --path ~/.config/dynmcp/config.json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runInit(stdout(cmd), flags)
		},
	}
	cmd.Flags().StringVar(&flags.path, "path", "", "the `file` to write (default mcp.json, or mcp.yaml with --yaml)")
	cmd.Flags().BoolVar(&flags.yaml, "yaml", false, "write YAML; the extension of --path wins")
	cmd.Flags().StringVar(&flags.schema, "schema", "", "the `address` of the schema to name in the file")
	cmd.Flags().BoolVar(&flags.offline, "offline", false, "write the schema beside the config, and name that")
	cmd.Flags().BoolVar(&flags.force, "force", false, "replace an existing file")
	return cmd
}

func runInit(out *terminal.Writer, flags initFlags) error {
	path := flags.path
	switch {
	case path == "" && flags.yaml:
		path = "mcp.yaml"
	case path == "":
		path = "mcp.json"
	}
	if flags.offline && flags.schema != "" {
		return hinted(errors.New("--offline and --schema exclude each other"), "leave out one of them")
	}
	file, err := openEdited(path)
	if err != nil {
		return err
	}
	if file.exists() && !flags.force {
		return hinted(fmt.Errorf("%s already exists", file.name()), "add --force to replace it, or add a server to it with dynmcp add")
	}
	if err := os.MkdirAll(filepath.Dir(file.path), 0o777); err != nil {
		return err
	}
	address := cmp.Or(flags.schema, schema.Address)
	if flags.offline {
		address = "./" + schemaFile
		if err := writeSchema(filepath.Dir(file.path), flags.force); err != nil {
			return err
		}
	}
	if err := file.write(emptyConfig(path, address, flags.yaml)); err != nil {
		return err
	}
	out.Printf("Wrote %s\n", file.name())
	if flags.offline {
		out.Printf("Wrote %s\n", filepath.Join(filepath.Dir(file.path), schemaFile))
	}
	out.Printf("Add a server with: dynmcp add NAME -- COMMAND ARGS…\n")
	return nil
}

// createConfig writes a config for who has no other way to one, such as the user of a
// host's extension, if there is none. Its only server says to the model where servers are
// added, and is started only if the model uses it.
func createConfig(path string, log *slog.Logger) error {
	if path == "" {
		return hinted(errors.New("--create needs to be told where"), "name the file with -c")
	}
	file, err := openEdited(path)
	if err != nil || file.exists() {
		return err
	}
	text, err := schema.SetServer(file.path, emptyConfig(file.path, schema.Address, false), schema.Server{
		Name:        "example",
		Description: "Echo, and other tools to try. This is an example: servers of your own are added to " + file.path + ", which is read at once.",
		Command:     "npx",
		Args:        []string{"-y", "@modelcontextprotocol/server-everything", "stdio"},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file.path), 0o777); err != nil {
		return err
	}
	log.Info("wrote a config with an example", "file", file.path)
	return file.write(text)
}

// emptyConfig returns a config without servers that names its schema, in the language
// of the path's extension; yaml decides for others.
func emptyConfig(path, address string, yaml bool) []byte {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		yaml = true
	case ".json", ".jsonc":
		yaml = false
	}
	if yaml {
		return fmt.Appendf(nil, "# yaml-language-server: $schema=%s\nmcp: {}\n", address)
	}
	return fmt.Appendf(nil, "{\n  \"$schema\": %q,\n  \"mcp\": {}\n}\n", address)
}

// writeSchema writes the schema into a directory. A file of that name is left alone
// unless it is an older schema of ours.
func writeSchema(dir string, force bool) error {
	file, err := openEdited(filepath.Join(dir, schemaFile))
	if err != nil {
		return err
	}
	text := schema.JSONSchema()
	switch ours := bytes.Contains(file.old, []byte(`"title": "dynmcp config"`)); {
	case bytes.Equal(file.old, text):
		return nil
	case file.exists() && ours:
		return atomicfile.Replace(file.path, text, file.mode) // generated: no backup
	case file.exists() && !force:
		return hinted(fmt.Errorf("%s already exists and is not a schema of dynmcp", file.name()), "add --force to replace it, or leave out --offline")
	}
	return file.write(text)
}
