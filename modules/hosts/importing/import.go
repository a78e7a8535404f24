// Package importing has the verb import, which adds the servers of hosts to a config.
package importing

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

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/described"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/cli/warm"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Verb imports the servers of hosts.
var Verb = cli.Verb{
	Use:   "import [HOST…]",
	Group: cli.SetUp,
	Short: "Import servers from your hosts",
	Long: `Read the MCP servers from the configs of hosts and show what dynmcp's config
would become; --write writes it. The hosts' own files are not changed. Hosts are
` + hosts.TwoLines(hosts.Names()) + `;
without a name, all of them. Of MCP Browser and dynmcp itself YAML is read too.
The files of other aggregators are read where these are named: ` + strings.Join(hosts.Programs()[:3], ", ") + `,
` + strings.Join(hosts.Programs()[3:], ", ") + `. What has no counterpart is said; sets of servers become profiles.

Values that may be secrets are shown as ***. With --vars they are not copied into
the config: ${NAME} takes their place, and they go to the .env file beside it, which
only you can read; with --secrets keyring to the keyring. With --lazy each server is started once, and described by what its
tools are about and it says of itself, so that later it starts only when it is needed.

A file that a host owns, like Claude Code's .mcp.json, is written
only if -c names it.`,
	Example: `  dynmcp import
  dynmcp import claude-desktop --write
  dynmcp import cursor --server github --vars --write
  dynmcp import --lazy --vars --write
  dynmcp import codex --from old-config.toml
  dynmcp import gridctl --from stack.yaml --secrets keyring --write`,
	Args:  cobra.ArbitraryArgs,
	Words: slices.Concat(hosts.Names(), hosts.Programs()),
	New: func(cmd *cobra.Command) cli.Run {
		var m importer
		f := cmd.Flags()
		m.choice.Add(cmd, "add to")
		f.StringVar(&m.from, "from", "", "read this `file` of a host")
		f.StringArrayVar(&m.servers, "server", nil, "take only the server of this `name`; may be repeated")
		if m.limits = module.LauncherOf(cmd.Context()); m.limits != nil {
			f.BoolVar(&m.sandbox, "sandbox", false, "limit programs to what every sandbox allows (dynmcp sandbox NAME says what)")
		}
		f.BoolVar(&m.lazy, "lazy", false, "start each server once, and propose a description of what its tools are about")
		f.BoolVar(&m.vars, "vars", false, "put ${NAME} in place of secrets, and these into the .env file beside the config")
		f.StringVar(&m.secrets, "secrets", "", "put secrets into this `place`: keyring, with ${keyring:NAME} in the config, or env, which is --vars")
		cli.CompleteValues(cmd, map[string][]string{"secrets": {secret.InKeyring, secret.InEnv}})
		f.BoolVar(&m.force, "force", false, "replace servers that the config already has")
		f.BoolVar(&m.write, "write", false, "write the config")
		warm.AddWarmFlag(cmd, &m.warm)
		return func(cmd *cobra.Command, args []string) error {
			var config string
			var added []string
			err := cli.Interruptibly(cmd, func(ctx context.Context) (err error) {
				m.out, m.errOut = cli.Stdout(cmd), cli.Stderr(cmd)
				if err := secret.CheckPlace(cmd.Context(), m.secrets); err != nil {
					return err
				}
				m.vars = m.vars || m.secrets != ""
				config, added, err = m.run(ctx, args)
				return err
			})
			if err != nil || len(added) == 0 || !m.warm && !cli.Stderr(cmd).Interactive {
				return err
			}
			return warm.OfferWarm(cmd, conf.Flags{Config: config}, m.warm, added...)
		}
	},
}

// An importer adds servers of hosts to a config.
type importer struct {
	choice  conf.Choice
	from    string
	servers []string
	write   bool
	force   bool
	vars    bool
	secrets string // where secrets are moved: keyring, env, or "" to keep them
	lazy    bool
	sandbox bool
	limits  module.Launcher // for sandbox; nil without one
	warm    bool

	out, errOut *terminal.Writer

	// Set by open.
	file *editfile.File      // the config
	to   *secret.Destination // of the secrets, nil if they stay
}

// run imports from the hosts called names, and returns the path of the written config and
// the names of the added servers.
func (m *importer) run(ctx context.Context, names []string) (config string, added []string, err error) {
	servers, err := m.readServers(ctx, names)
	if err != nil {
		return "", nil, err
	}
	if len(servers) == 0 && m.from != "" {
		m.out.Printf("%s has no servers that can be imported\n", m.from)
		return "", nil, nil
	}
	if len(servers) == 0 {
		m.out.Say("No host here has servers yet, so there is nothing to import.")
		m.out.Printf("To add a server: dynmcp add NAME -- COMMAND ARGS…\nTo import a file: dynmcp import --from FILE\n")
		return "", nil, nil
	}
	if err := m.open(servers); err != nil {
		return "", nil, err
	}
	text, imported, err := m.addServers(ctx, servers)
	if err != nil {
		return "", nil, err
	}
	if len(imported) == 0 {
		m.out.Printf("Nothing to add to %s\n", m.file.Name())
		return "", nil, nil
	}
	added = m.show(text, imported)
	if !m.write {
		if m.to != nil {
			m.to.Announce(m.errOut)
		}
		m.errOut.Printf("Nothing was written; --write writes it, --server NAME takes only that one\n")
		return "", nil, nil
	}
	if err := m.replace(ctx, text); err != nil {
		return "", nil, err
	}
	m.out.Printf("Added %s to %s\n", strings.Join(added, ", "), m.file.Name())
	if m.to != nil {
		m.to.Report(m.errOut)
	}
	m.printNextSteps(imported)
	return cmp.Or(m.file.Link, m.file.Path), added, m.out.Err
}

// show prints the change of the config with notes, and returns the names of the servers.
func (m *importer) show(text []byte, imported []hosts.Server) (added []string) {
	editfile.ShowDiff(m.out, m.file.Path, m.file.Old, text, mask.File)
	for _, s := range imported {
		for _, note := range s.Notes {
			m.errOut.Printf("%s: %s\n", s.Name, note)
		}
		added = append(added, s.Name)
	}
	return added
}

func (m *importer) open(servers []hosts.Server) error {
	path, err := m.target(servers)
	if err != nil {
		return err
	}
	if m.file, err = editfile.Open(path); err != nil {
		return err
	}
	if !m.file.Exists() {
		m.file.NewMode = 0o600 // there may be secrets in it
	}
	if !m.vars {
		return nil
	}
	var texts []string
	for _, s := range servers {
		if text, err := schema.SetServer("x.json", []byte("{}"), s.Server); err == nil { // addServers reports an error
			texts = append(texts, string(text))
		}
	}
	m.to, err = secret.Open(m.file, m.secrets == secret.InKeyring, texts...)
	return err
}

// replace writes the secrets, and then the config that refers to them.
func (m *importer) replace(ctx context.Context, text []byte) error {
	if m.to != nil {
		if err := m.to.Write(); err != nil {
			return err
		}
	}
	if !m.file.Exists() {
		if _, err := editfile.WriteSchema(ctx, m.file.Path, editfile.SchemaAddress(cli.Released()), false); err != nil {
			return err
		}
	}
	return m.file.Write(text)
}

// target returns the path of the config to add to: the one of the working directory, else that of the user,
// which is made if there is none, unless all servers are from files of this directory. A host's own file is
// used only if the user names it, because teams share such files, and the host would have every server twice.
func (m *importer) target(servers []hosts.Server) (string, error) {
	const fresh = "mcp.json"
	found, err := conf.Find(".")
	h, owned := hosts.Owner(found)
	switch named, failed := m.choice.File(); {
	case failed != nil && !errors.Is(failed, fs.ErrNotExist):
		return "", failed
	case m.choice.User && conf.FindUser() == "" && conf.NewUser() != "":
		return conf.NewUser(), nil
	case m.choice.Project && (err != nil || owned):
		return fresh, nil
	case m.choice != (conf.Choice{}):
		return named, failed
	case err == nil && !owned:
		return found, nil
	}
	to := conf.NewUser()
	if home, _ := os.UserHomeDir(); to == "" || !hosts.SameFile(home, ".") && !slices.ContainsFunc(servers, func(s hosts.Server) bool { return !filepath.IsLocal(conf.Relative(s.File)) }) {
		to = fresh
	}
	switch _, taken := hosts.Owner(to); {
	case taken && owned:
		return "", hint.With(fmt.Errorf("%s belongs to %s", found, h.Title), "name the config to add to with -c")
	case owned:
		m.errOut.Printf("%s belongs to %s and is left alone: the servers go to %s; -c %s adds them there\n", conf.Relative(found), h.Title, to, conf.Relative(found))
	case to != fresh:
		m.errOut.Printf("The servers go to %s, your own config; --project writes %s here\n", to, fresh)
	}
	return to, nil
}

// addServers returns the text of the config with the servers, and the servers that were
// added. It reports why others were not added.
func (m *importer) addServers(ctx context.Context, servers []hosts.Server) ([]byte, []hosts.Server, error) {
	text := m.file.Old
	if !m.file.Exists() {
		text = editfile.EmptyConfig(m.file.Path, editfile.SchemaAddress(cli.Released()), false)
	}
	entries, err := schema.Entries(m.file.Path, text)
	if err != nil {
		return nil, nil, err
	}
	added := m.choose(servers, editfile.EntryNames(entries))
	if m.lazy {
		if err := m.describeServers(ctx, added); err != nil {
			return nil, nil, err
		}
	}
	for i := range added {
		s := &added[i]
		s.SetFolder(filepath.Dir(m.file.Path))
		if m.to != nil {
			s.MoveSecrets(m.to.Put)
		} else {
			s.NoteSecrets()
		}
		if m.sandbox && s.Transport == schema.Stdio && command.LauncherOf(s.Server) == nil {
			s.Server = m.limits.Limit(s.Server)
		}
		if text, err = schema.SetServer(m.file.Path, text, s.Server); err != nil {
			return nil, nil, err
		}
		for _, set := range s.Sets {
			if profile := schema.ServerName(set); profile != "" {
				text, err = hosts.AddToProfile(m.file.Path, text, profile, s.Name)
			}
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return text, added, nil
}

// choose returns the servers to add to a config that has the names have, and reports why
// others are left out.
func (m *importer) choose(servers []hosts.Server, have []string) (added []hosts.Server) {
	for _, s := range servers {
		if why := m.whyNot(s, added, have); why != "" {
			m.errOut.Printf("%s from %s is left out: %s\n", s.Name, s.File, why)
			continue
		}
		added = append(added, s)
	}
	return added
}

// whyNot returns the reason why s cannot be added, or "". added are the servers chosen
// before, have the names in the config.
func (m *importer) whyNot(s hosts.Server, added []hosts.Server, have []string) string {
	i := slices.IndexFunc(added, func(t hosts.Server) bool { return t.Name == s.Name })
	switch {
	case hosts.SameFile(s.File, m.file.Path):
		return "dynmcp reads this file already"
	case i >= 0 && reflect.DeepEqual(added[i].Server, s.Server):
		return "it is the same as in " + added[i].File
	case i >= 0:
		return "another server has this name, in " + added[i].File
	case slices.Contains(have, s.Name) && !m.force:
		return "the config has a server of this name; --force replaces it"
	}
	return s.Problem()
}

// describeServers starts each server without a description once, and proposes one. A server
// that does not start gets no description.
func (m *importer) describeServers(ctx context.Context, servers []hosts.Server) error {
	var bare []schema.Server
	for _, s := range servers {
		if s.Description == "" && !s.Disabled {
			bare = append(bare, s.Server)
		}
	}
	proposals, failed, err := described.Propose(ctx, filepath.Dir(m.file.Path), bare, m.errOut)
	for i := range servers {
		s := &servers[i]
		if err := failed[s.Name]; err != nil {
			s.Notes = append(s.Notes, "it did not start, and has no description: "+selfhost.Explain(err, 0).Text)
		}
		s.Description = cmp.Or(s.Description, proposals[s.Name])
	}
	return err
}
