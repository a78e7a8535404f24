package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// importFlags are the flags of import.
type importFlags struct {
	config  string
	from    string
	servers []string
	write   bool
	force   bool
	vars    bool
	lazy    bool
	warm    bool
}

func importCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "import [HOST…]",
		Short: "Import the servers of your hosts",
		Long: `Read the MCP servers from the configs of hosts and show what dynmcp's config
would become; --write writes it. The hosts' own files are not changed. Hosts are
` + nameList(hosts.Names()) + `;
without a name, all of them. Of MCP Browser and dynmcp itself YAML is read too.

Values that may be secrets are shown as ***. With --vars they are not copied into
the config: ${NAME} takes their place, and they go to the .env file beside it, which
only you can read. With --lazy each server is started once, and described by what it
says of itself, so that later it starts only when it is needed.

A file that a host owns, like Claude Code's .mcp.json, is written
only if -c names it.`,
		Example: `  dynmcp import
  dynmcp import claude-desktop --write
  dynmcp import cursor --server github --vars --write
  dynmcp import --lazy --vars --write
  dynmcp import codex --from old-config.toml`,
		ValidArgs: hosts.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			var config string
			var added []string
			err := interruptibly(cmd, func(ctx context.Context) (err error) {
				config, added, err = runImport(ctx, stdout(cmd), stderr(cmd), args, flags)
				return err
			})
			if err != nil || len(added) == 0 || !flags.warm && !stderr(cmd).interactive {
				return err
			}
			return offerWarm(cmd, configFlags{config: config}, flags.warm, added...)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.config, "config", "c", "", "the config `file` to add to (default: the one in the working directory, or a new mcp.json)")
	f.StringVar(&flags.from, "from", "", "read this `file` of a host")
	f.StringArrayVar(&flags.servers, "server", nil, "take only the server of this `name`; may be repeated")
	f.BoolVar(&flags.lazy, "lazy", false, "start each server once, and propose a description of what it says of itself")
	f.BoolVar(&flags.vars, "vars", false, "put ${NAME} in place of secrets, and these into the .env file beside the config")
	f.BoolVar(&flags.force, "force", false, "replace servers that the config already has")
	f.BoolVar(&flags.write, "write", false, "write the config")
	addWarmFlag(cmd, &flags.warm)
	return cmd
}

// runImport imports, and returns the config that it wrote and the names of what it added.
func runImport(ctx context.Context, out, errOut *terminal, names []string, flags importFlags) (config string, added []string, err error) {
	servers, err := readServers(ctx, errOut, names, flags)
	if err != nil {
		return "", nil, err
	}
	if len(servers) == 0 {
		out.say("No host here has servers yet, so there is nothing to import.")
		out.printf("To add a server: dynmcp add NAME -- COMMAND ARGS…\nTo import a file: dynmcp import --from FILE\n")
		return "", nil, nil
	}
	path, err := importTarget(errOut, flags.config)
	if err != nil {
		return "", nil, err
	}
	file, err := openEdited(path)
	if err != nil {
		return "", nil, err
	}
	if !file.exists() {
		file.newMode = 0o600 // there may be secrets in it
	}
	env, err := openVariables(file, servers, flags.vars)
	if err != nil {
		return "", nil, err
	}
	text, imported, err := addServers(ctx, errOut, file, servers, env, flags)
	if err != nil {
		return "", nil, err
	}
	if len(imported) == 0 {
		out.printf("Nothing to add to %s\n", file.name())
		return "", nil, nil
	}
	showDiff(out, file.path, file.old, text, schema.Mask)
	printNotes(errOut, imported)
	if !flags.write {
		if env.writes() {
			errOut.printf("%s would be written to %s\n", count(len(env.Values), "variable"), env.file.name())
		}
		errOut.printf("Nothing was written; --write writes it, --server NAME takes only that one\n")
		return "", nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(file.path), 0o777); err != nil {
		return "", nil, err
	}
	if err := env.write(); err != nil { // first: without it the config would miss its variables
		return "", nil, err
	}
	if err := file.write(text); err != nil {
		return "", nil, err
	}
	for _, s := range imported {
		added = append(added, s.Name)
	}
	out.printf("Added %s to %s\n", strings.Join(added, ", "), file.name())
	env.report(errOut)
	printNextSteps(errOut, file, imported)
	return cmp.Or(file.link, file.path), added, nil
}

// importTarget returns the config to add to. One that is a host's own is not written
// unless the user names it: teams share such files, and the host would have every
// server twice.
func importTarget(errOut *terminal, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	const fresh = "mcp.json"
	found, err := schema.Find(".")
	if err != nil {
		found = fresh
	}
	h, owned := hosts.Owner(found)
	if !owned {
		return found, nil
	}
	if _, owned := hosts.Owner(fresh); owned {
		return "", hinted(fmt.Errorf("%s belongs to %s", found, h.Title), "name the config to add to with -c")
	}
	errOut.printf("%s belongs to %s and is left alone: the servers go to %s; -c %s adds them there\n", relative(found), h.Title, fresh, relative(found))
	return fresh, nil
}

// readServers reads the servers of the hosts that are named, or of all hosts that
// have any, and reports on each file. That there are none is an error if a host or a file
// is named, or one could not be read.
func readServers(ctx context.Context, errOut *terminal, names []string, flags importFlags) ([]hosts.Server, error) {
	chosen, err := chooseHosts(ctx, names, flags.from)
	if err != nil {
		return nil, err
	}
	var all []hosts.Server
	wanted := len(names) > 0 || flags.from != ""
	for _, h := range chosen {
		files := []string{flags.from}
		if flags.from == "" {
			if files, err = h.Files(); err != nil {
				return nil, err
			}
		}
		for _, path := range files {
			servers, err := h.Read(ctx, path)
			switch {
			case errors.Is(err, fs.ErrNotExist) && flags.from == "":
				continue
			case err != nil && len(names) == 0 && flags.from == "":
				errOut.printf("%s: %v\n", h.Title, err)
				wanted = true
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
	if len(all) == 0 && wanted {
		return nil, hinted(errors.New("no servers found"), "name a host's file with --from")
	}
	return selectServers(all, flags.servers)
}

// chooseHosts returns the hosts to read. A file is read as that of the host that is
// named, or of the one that it looks like.
func chooseHosts(ctx context.Context, names []string, from string) ([]hosts.Host, error) {
	if from != "" && len(names) > 1 {
		return nil, hinted(errors.New("--from names one file, of one host"), "name one host")
	}
	if from != "" && len(names) == 0 {
		data, err := regular.Read(ctx, from, regular.Large)
		if err != nil {
			return nil, err
		}
		return []hosts.Host{hosts.WhoseFile(from, data)}, nil
	}
	if len(names) == 0 {
		return hosts.All(), nil
	}
	var chosen []hosts.Host
	for _, name := range names {
		h, err := hostNamed(name, hosts.Names())
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
func addServers(ctx context.Context, errOut *terminal, file *editedFile, servers []hosts.Server, env *variablesFile, flags importFlags) ([]byte, []hosts.Server, error) {
	text := file.old
	if !file.exists() {
		text = emptyConfig(file.path, schema.Address, false)
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
		case hosts.SameFile(s.File, file.path):
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
		added = append(added, s)
	}
	if flags.lazy {
		if err := describeServers(ctx, errOut, file.path, added); err != nil {
			return nil, nil, err
		}
	}
	for i := range added {
		s := &added[i]
		if flags.vars {
			s.MoveSecrets(env.Variables)
		} else {
			s.NoteSecrets()
		}
		if text, err = schema.SetServer(file.path, text, s.Server); err != nil {
			return nil, nil, err
		}
	}
	return text, added, nil
}

// describeServers starts the servers once, as they would be in the config of this
// path, and proposes a description for each that has none. One that does not start
// stays without.
func describeServers(ctx context.Context, errOut *terminal, config string, servers []hosts.Server) error {
	text := []byte("{}")
	var err error
	var names []string
	for _, s := range servers {
		if s.Description != "" || s.Disabled {
			continue
		}
		if text, err = schema.SetServer("servers.json", text, s.Server); err != nil {
			return err
		}
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return nil
	}
	cfg, err := schema.LoadText(filepath.Join(filepath.Dir(config), "servers.json"), text, schema.LoadOptions{})
	if err != nil {
		return err
	}
	secrets.Add(cfg.Secrets()...)
	on := target{cfg: cfg, errOut: errOut}
	h, failed, err := on.start(ctx, names...)
	if err != nil {
		return err
	}
	defer h.close()
	if err := context.Cause(ctx); err != nil {
		return interrupted(err)
	}
	view := h.agg.View()
	for i := range servers {
		s := &servers[i]
		switch {
		case failed[s.Name] != nil:
			s.Notes = append(s.Notes, "it did not start, and has no description: "+explain(failed[s.Name], 0).text)
		case slices.Contains(names, s.Name):
			s.Description = view.Proposal(s.Name)
		}
	}
	return nil
}

// printNotes prints what the user should know of the servers.
func printNotes(errOut *terminal, servers []hosts.Server) {
	for _, s := range servers {
		for _, note := range s.Notes {
			errOut.printf("%s: %s\n", s.Name, note)
		}
	}
}

// printNextSteps says what is left to do after servers were imported into a file:
// describe them, let a host start dynmcp, and take the originals out of the hosts.
func printNextSteps(errOut *terminal, file *editedFile, servers []hosts.Server) {
	var eager, commands []string
	for _, s := range servers {
		if !s.Lazy() && !s.Disabled {
			eager = append(eager, s.Name)
		}
		if command := installLine(s, file.path); !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	errOut.printf("What is left to do:\n")
	if len(eager) > 0 {
		errOut.printf("- %s without a description start with every host: %s. Give each a \"description\" that says what it does and when to use it, "+
			"and it starts only when it is needed; dynmcp import --lazy --force proposes them\n", count(len(eager), "server"), strings.Join(eager, ", "))
	} else {
		errOut.printf("- read the descriptions: they are all that a model knows of a server before it is used\n")
	}
	errOut.printf("- put dynmcp into the hosts, and take the originals out of them, which would have every tool twice:\n")
	for _, command := range commands {
		errOut.printf("  %s\n", command)
	}
}

// installLine is the command that puts dynmcp with a config into the host that a server
// was read from, in place of the server.
func installLine(s hosts.Server, config string) string {
	config = shellescape.Quote(config)
	if !s.Host.IsHost() {
		return "dynmcp install HOST -c " + config
	}
	command := "dynmcp install " + s.Host.Name + " -c " + config + " --take-over"
	switch user, err := s.Host.UserFile(); {
	case err == nil && hosts.SameFile(s.File, user):
		return command
	case s.File == filepath.FromSlash(s.Host.Project):
		return command + " --project"
	}
	return command + " --file " + shellescape.Quote(s.File)
}
