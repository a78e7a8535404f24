package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"dynmcp/schema"
)

// schemaFile is the name of the schema beside the config, where editors find
// it without a network.
const schemaFile = "dynmcp.schema.json"

// initFlags are what init is told.
type initFlags struct {
	path   string
	schema string
	yaml   bool
	force  bool
}

func initCommand() *cobra.Command {
	var flags initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a config file without servers",
		Long: `Write a config file without servers, and beside it the JSON Schema that editors
complete and check it by. A file that is there stays as it is, unless --force is
given; then it is kept with .bak at the end of its name.`,
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
	cmd.Flags().StringVar(&flags.schema, "schema", "", "the `address` of the schema to name in the file; none is written beside it then")
	cmd.Flags().BoolVar(&flags.force, "force", false, "replace a file that is there")
	return cmd
}

func runInit(out *screen, flags initFlags) error {
	path, asYAML := initPath(flags)
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
	address := flags.schema
	if address == "" {
		address = "./" + schemaFile
		if err := writeSchema(filepath.Dir(file.path), flags.force); err != nil {
			return err
		}
	}
	if err := file.write(emptyConfig(address, asYAML)); err != nil {
		return err
	}
	out.printf("Wrote %s\n", file.name())
	if flags.schema == "" {
		out.printf("Wrote %s\n", filepath.Join(filepath.Dir(file.path), schemaFile))
	}
	out.printf("Add a server with: dynmcp add NAME -- COMMAND ARGS…\n")
	return nil
}

func initPath(flags initFlags) (path string, asYAML bool) {
	path = flags.path
	if path == "" {
		path = "mcp.json"
		if flags.yaml {
			path = "mcp.yaml"
		}
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return path, true
	case ".json", ".jsonc":
		return path, false
	}
	return path, flags.yaml
}

func emptyConfig(address string, asYAML bool) []byte {
	if asYAML {
		return fmt.Appendf(nil, "# yaml-language-server: $schema=%s\nmcp: {}\n", address)
	}
	return fmt.Appendf(nil, "{\n  \"$schema\": %q,\n  \"mcp\": {}\n}\n", address)
}

// writeSchema writes the schema into a directory. Another file of that name
// is left alone unless it is an older schema of ours.
func writeSchema(dir string, force bool) error {
	file, err := openEdited(filepath.Join(dir, schemaFile))
	if err != nil {
		return err
	}
	text := schema.JSONSchema()
	switch ours := bytes.Contains(file.old, []byte(`"title": "dynmcp config"`)); {
	case bytes.Equal(file.old, text):
		return nil
	case file.exists() && !ours && !force:
		return hinted(fmt.Errorf("%s already exists and is no schema of dynmcp", file.name()), "add --force to replace it, or name another schema with --schema")
	case file.exists() && ours:
		return replaceFile(file.path, text, file.mode) // it is made anew whenever it is wanted
	}
	return file.write(text)
}
