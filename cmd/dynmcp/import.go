package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dynmcp/cmd/dynmcp/internal/hosts"
	"dynmcp/schema"
)

// importFlags are what import is told.
type importFlags struct {
	config  string
	from    string
	servers []string
	write   bool
	force   bool
	vars    bool
}

func importCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "import [HOST…]",
		Short: "Take over the servers that hosts have",
		Long: `Read the MCP servers out of the configs of hosts, where they lie, and show what
the config of dynmcp would become; --write writes it. The hosts' files stay as
they are. Hosts are ` + strings.Join(hosts.Names(), ", ") + `;
without a name, all of them.

Values that may be secrets are shown as ***. With --vars they are not copied:
${NAME} stands in their place, and you are told which variables to set.`,
		Example: `  dynmcp import
  dynmcp import claude-desktop --write
  dynmcp import cursor --server github --vars --write
  dynmcp import codex --from old-config.toml`,
		ValidArgs: hosts.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runImport(cmd, args, flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.config, "config", "c", "", "the config `file` to add to (default: the one in the working directory, or a new mcp.json)")
	f.StringVar(&flags.from, "from", "", "read this `file` of a host")
	f.StringArrayVar(&flags.servers, "server", nil, "take only the server of this `name`; may be repeated")
	f.BoolVar(&flags.vars, "vars", false, "put ${NAME} in place of secrets")
	f.BoolVar(&flags.force, "force", false, "replace servers that the config has already")
	f.BoolVar(&flags.write, "write", false, "write the config")
	return cmd
}

func runImport(cmd *cobra.Command, names []string, flags importFlags) error {
	servers, err := collect(stderr(cmd), names, flags)
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		return hinted(errors.New("no servers found"), "name a host's file with --from")
	}
	file, err := importTarget(flags.config)
	if err != nil {
		return err
	}
	text, taken, err := imported(stderr(cmd), file, servers, flags)
	if err != nil {
		return err
	}
	out := stdout(cmd)
	if len(taken) == 0 {
		out.printf("Nothing to add to %s\n", file.name())
		return nil
	}
	showDiff(out, file.path, file.old, text, schema.Mask)
	adviseImport(stderr(cmd), taken)
	if !flags.write {
		stderr(cmd).printf("Nothing was written; --write writes it, --server NAME takes only that one\n")
		return nil
	}
	return writeImport(out, file, text, taken)
}

// collect reads the servers of the hosts that are named, or of all that are
// there, and tells about each file.
func collect(log *screen, names []string, flags importFlags) ([]hosts.Server, error) {
	chosen, err := chosenHosts(names, flags.from)
	if err != nil {
		return nil, err
	}
	var all []hosts.Server
	for _, h := range chosen {
		files := []string{flags.from}
		if flags.from == "" {
			if files, err = h.Files(); err != nil {
				return nil, err
			}
		}
		for _, path := range files {
			servers, err := h.Read(path)
			switch {
			case errors.Is(err, fs.ErrNotExist) && flags.from == "":
				continue
			case err != nil && len(names) == 0 && flags.from == "":
				log.printf("%s: %v\n", h.Title, err)
				continue
			case err != nil:
				return nil, err
			}
			log.printf("%s: %d in %s\n", h.Title, len(servers), path)
			all = append(all, servers...)
		}
	}
	return wanted(all, flags.servers)
}

// chosenHosts are the hosts to read. A file is read as the host's that is named,
// or as what it looks like.
func chosenHosts(names []string, from string) ([]hosts.Host, error) {
	if from != "" && len(names) > 1 {
		return nil, hinted(errors.New("--from names one file, of one host"), "name one host")
	}
	if from != "" && len(names) == 0 {
		names = []string{"claude-desktop"}
		data, err := os.ReadFile(from)
		switch {
		case err != nil:
			return nil, err
		case filepath.Ext(from) == ".toml":
			names[0] = "codex"
		case !strings.Contains(string(data), `"mcpServers"`):
			names[0] = "vscode"
		}
	}
	if len(names) == 0 {
		return hosts.All(), nil
	}
	var chosen []hosts.Host
	for _, name := range names {
		h, err := hostNamed(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, h)
	}
	return chosen, nil
}

// wanted are the servers of these names, all if there are none, without dynmcp
// itself.
func wanted(all []hosts.Server, names []string) ([]hosts.Server, error) {
	all = slices.DeleteFunc(all, func(s hosts.Server) bool { return s.IsDynmcp() })
	if len(names) == 0 {
		return all, nil
	}
	var have []string
	for _, s := range all {
		have = append(have, s.Name)
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, hinted(fmt.Errorf("no host has a server %q", name), "they have %s", strings.Join(have, ", "))
		}
	}
	return slices.DeleteFunc(all, func(s hosts.Server) bool { return !slices.Contains(names, s.Name) }), nil
}

// importTarget is the config to add to. Where there is none it begins as init
// begins one.
func importTarget(path string) (*editedFile, error) {
	if path == "" {
		path = "mcp.json"
		if found, err := schema.Find("."); err == nil {
			path = found
		}
	}
	return openEdited(path)
}

// imported is the text of the config with the servers in it, and those that
// were taken. Why others were not is told.
func imported(log *screen, file *editedFile, servers []hosts.Server, flags importFlags) ([]byte, []hosts.Server, error) {
	text := file.old
	if !file.exists() {
		_, asYAML := initPath(initFlags{path: file.path})
		text = emptyConfig("./"+schemaFile, asYAML)
	}
	entries, err := schema.Entries(file.path, text)
	if err != nil {
		return nil, nil, err
	}
	var taken []hosts.Server
	for _, s := range servers {
		if why := refusal(s, file.path, entries, taken, flags.force); why != "" {
			log.printf("%s from %s is left out: %s\n", s.Name, s.File, why)
			continue
		}
		s.HideSecrets(flags.vars)
		if text, err = schema.SetServer(file.path, text, s.Server); err != nil {
			return nil, nil, err
		}
		taken = append(taken, s)
	}
	return text, taken, nil
}

// refusal says why a server is not taken over, empty if it is.
func refusal(s hosts.Server, target string, entries []schema.Entry, taken []hosts.Server, force bool) string {
	i := slices.IndexFunc(taken, func(t hosts.Server) bool { return t.Name == s.Name })
	switch {
	case sameFile(s.File, target):
		return "dynmcp reads this file already"
	case i >= 0 && reflect.DeepEqual(taken[i].Server, s.Server):
		return "it is the same as in " + taken[i].File
	case i >= 0:
		return "there is another one of this name in " + taken[i].File
	case hasEntry(entries, s.Name) && !force:
		return "the config has a server of this name; --force replaces it"
	}
	return s.Problem()
}

// adviseImport tells what was noted, and how to make the servers lazy.
func adviseImport(log *screen, taken []hosts.Server) {
	eager := 0
	for _, s := range taken {
		for _, note := range s.Notes {
			log.printf("%s: %s\n", s.Name, note)
		}
		if s.Description == "" {
			eager++
		}
	}
	if eager > 0 {
		log.printf("%d without a description: they start with every host. Give each a \"description\" that says what it does and when to\n"+
			"use it, and it starts when it is needed. dynmcp find and dynmcp ls show what is there\n", eager)
	}
}

func writeImport(out *screen, file *editedFile, text []byte, taken []hosts.Server) error {
	if err := os.MkdirAll(filepath.Dir(file.path), 0o777); err != nil {
		return err
	}
	if !file.exists() {
		if err := writeSchema(filepath.Dir(file.path), false); err != nil {
			return err
		}
	}
	if err := file.write(text); err != nil {
		return err
	}
	var names []string
	for _, s := range taken {
		names = append(names, s.Name)
	}
	out.printf("Added %s to %s\n", strings.Join(names, ", "), file.name())
	return nil
}
