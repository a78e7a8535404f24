package editfile

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// OpenConfig opens a config file to edit it. If path is "", it finds the one that conf.Choice finds.
func OpenConfig(path string) (*File, error) {
	path, err := conf.Choice{Config: path}.File()
	if err != nil {
		return nil, err
	}
	file, err := Open(path)
	if err == nil && !file.Exists() {
		return nil, hint.With(cli.MessageError("Config file not found: "+file.Path), "create it with: dynmcp init --path %s", path)
	}
	return file, err
}

// LockConfig opens a config file like OpenConfig, and locks it.
func LockConfig(path string) (file *File, unlock func(), err error) {
	if file, err = OpenConfig(path); err == nil {
		unlock, err = file.Lock()
	}
	return file, unlock, err
}

// EmptyConfig returns a config without servers that names the schema at address. The extension of
// path selects the format; for other extensions, yaml does.
func EmptyConfig(path, address string, yaml bool) []byte {
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

// besideConfig is the name of the JSON Schema beside a config.
const besideConfig = "dynmcp.schema.json"

// SchemaAddress returns what a new config names as its schema: the file of the release in the
// repository, or a file beside the config, which WriteSchema writes.
func SchemaAddress(released bool) string {
	if released {
		return schema.Address
	}
	return "./" + besideConfig
}

// WriteSchema writes the JSON Schema for the modules of ctx beside a config that names it so, and returns its path, or "" if
// the config names another. Unless force is set, it replaces an existing file only if that is a schema
// of dynmcp.
func WriteSchema(ctx context.Context, config, address string, force bool) (string, error) {
	if address != SchemaAddress(false) {
		return "", nil
	}
	file, err := Open(filepath.Join(filepath.Dir(config), besideConfig))
	if err != nil {
		return "", err
	}
	text := JSONSchema(ctx)
	switch ours := bytes.Contains(file.Old, []byte(`"title": "dynmcp config"`)); {
	case bytes.Equal(file.Old, text):
		return file.Path, nil
	case file.Exists() && ours:
		return file.Path, atomicfile.Replace(file.Path, text, file.Mode) // generated: no backup
	case file.Exists() && !force:
		return "", hint.With(fmt.Errorf("%s already exists and is not a schema of dynmcp", file.Name()),
			"write the config elsewhere, or name a schema with dynmcp init --schema ADDRESS")
	}
	return file.Path, file.Write(text)
}

// EntryNames returns the names of entries.
func EntryNames(entries []schema.Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

// ShowDiff prints the changes of a file, with secrets hidden by mask.
func ShowDiff(out *terminal.Writer, name string, old, text []byte, mask func(name string, text []byte) []byte) {
	if len(old) > 0 {
		old = mask(name, old)
	}
	if len(text) > 0 {
		text = mask(name, text)
	}
	for line := range bytes.Lines(diff.Diff(name, old, name, text)) {
		switch {
		case bytes.HasPrefix(line, []byte("diff ")):
		case line[0] == '+':
			out.Paint(terminal.Green, string(line))
		case line[0] == '-':
			out.Paint(terminal.Red, string(line))
		default:
			out.Printf("%s", line)
		}
	}
}
