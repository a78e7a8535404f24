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

// importFlags are the flags of import.
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
		Long: `Read the MCP servers from the configs of hosts and show what dynmcp's config
would become; --write writes it. The hosts' own files are not changed. Hosts are
` + strings.Join(hosts.Names(), ", ") + `;
without a name, all of them.

Values that may be secrets are shown as ***. With --vars they are not copied:
${NAME} takes their place, and you are told which variables to set.`,
		Example: `  dynmcp import
  dynmcp import claude-desktop --write
  dynmcp import cursor --server github --vars --write
  dynmcp import codex --from old-config.toml`,
		ValidArgs: hosts.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runImport(stdout(cmd), stderr(cmd), args, flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.config, "config", "c", "", "the config `file` to add to (default: the one in the working directory, or a new mcp.json)")
	f.StringVar(&flags.from, "from", "", "read this `file` of a host")
	f.StringArrayVar(&flags.servers, "server", nil, "take only the server of this `name`; may be repeated")
	f.BoolVar(&flags.vars, "vars", false, "put ${NAME} in place of secrets")
	f.BoolVar(&flags.force, "force", false, "replace servers that the config already has")
	f.BoolVar(&flags.write, "write", false, "write the config")
	return cmd
}

func runImport(out, errOut *terminal, names []string, flags importFlags) error {
	servers, err := readServers(errOut, names, flags)
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		return hinted(errors.New("no servers found"), "name a host's file with --from")
	}
	path := flags.config
	if path == "" {
		path = "mcp.json"
		if found, err := schema.Find("."); err == nil {
			path = found
		}
	}
	file, err := openEdited(path)
	if err != nil {
		return err
	}
	text, imported, err := addServers(errOut, file, servers, flags)
	if err != nil {
		return err
	}
	if len(imported) == 0 {
		out.printf("Nothing to add to %s\n", file.name())
		return nil
	}
	showDiff(out, file.path, file.old, text, schema.Mask)
	printNotes(errOut, imported)
	if !flags.write {
		errOut.printf("Nothing was written; --write writes it, --server NAME takes only that one\n")
		return nil
	}
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
	var added []string
	for _, s := range imported {
		added = append(added, s.Name)
	}
	out.printf("Added %s to %s\n", strings.Join(added, ", "), file.name())
	return nil
}

// readServers reads the servers of the hosts that are named, or of all hosts that
// have any, and reports on each file.
func readServers(errOut *terminal, names []string, flags importFlags) ([]hosts.Server, error) {
	chosen, err := chooseHosts(names, flags.from)
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
				errOut.printf("%s: %v\n", h.Title, err)
				continue
			case err != nil:
				return nil, err
			}
			errOut.printf("%s: %d in %s\n", h.Title, len(servers), path)
			for _, s := range servers {
				if s.IsDynmcp() {
					errOut.printf("%s from %s is left out: it is dynmcp itself\n", s.Name, path)
					continue
				}
				all = append(all, s)
			}
		}
	}
	return selectServers(all, flags.servers)
}

// chooseHosts returns the hosts to read. A file is read as that of the host that is
// named, or of the one that it looks like.
func chooseHosts(names []string, from string) ([]hosts.Host, error) {
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

// selectServers returns the servers of these names, all if there are none.
func selectServers(all []hosts.Server, names []string) ([]hosts.Server, error) {
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

// addServers returns the text of the config with the servers added, and those that
// were. It reports why others were not.
func addServers(errOut *terminal, file *editedFile, servers []hosts.Server, flags importFlags) ([]byte, []hosts.Server, error) {
	text := file.old
	if !file.exists() {
		text = emptyConfig(file.path, "./"+schemaFile, false)
	}
	entries, err := schema.Entries(file.path, text)
	if err != nil {
		return nil, nil, err
	}
	have := entryNames(entries)
	var added []hosts.Server
	for _, s := range servers {
		why := s.Problem()
		i := slices.IndexFunc(added, func(t hosts.Server) bool { return t.Name == s.Name })
		switch {
		case sameFile(s.File, file.path):
			why = "dynmcp reads this file already"
		case i >= 0 && reflect.DeepEqual(added[i].Server, s.Server):
			why = "it is the same as in " + added[i].File
		case i >= 0:
			why = "another server has this name, in " + added[i].File
		case slices.Contains(have, s.Name) && !flags.force:
			why = "the config has a server of this name; --force replaces it"
		}
		if why != "" {
			errOut.printf("%s from %s is left out: %s\n", s.Name, s.File, why)
			continue
		}
		s.HideSecrets(flags.vars)
		if text, err = schema.SetServer(file.path, text, s.Server); err != nil {
			return nil, nil, err
		}
		added = append(added, s)
	}
	return text, added, nil
}

// printNotes prints what the user should know of the servers, and how to make them
// lazy.
func printNotes(errOut *terminal, servers []hosts.Server) {
	eager := 0
	for _, s := range servers {
		for _, note := range s.Notes {
			errOut.printf("%s: %s\n", s.Name, note)
		}
		if s.Description == "" {
			eager++
		}
	}
	if eager > 0 {
		errOut.printf("%d without a description: they start with every host. Give each a \"description\" that says what it does and when to\n"+
			"use it, and it starts when it is needed. dynmcp find and dynmcp ls show what is there\n", eager)
	}
}
