package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth"
)

// endpointWidth is how much of a command line or address a list shows.
const endpointWidth = 48

func lsCommand() *cobra.Command {
	from := configFlags{asWritten: true}
	var asJSON, effective bool
	cmd := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the servers of the config",
		Long: `List the servers of the config in the order of the file. Nothing is started or
connected to. Secrets and values of variables are not shown. The protocol version is
the one that a server spoke when it was last started.`,
		Example: `  dynmcp ls
  dynmcp ls --json | jq -r '.[] | select(.mode == "lazy").name'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load(cmd.Context())
			if err != nil {
				return err
			}
			entries := list(cfg)
			if asJSON {
				return terminal.WriteJSON(stdout(cmd), entries)
			}
			return writeEntries(stdout(cmd), entries, effective)
		},
	}
	from.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, with endpoints in full")
	cmd.Flags().BoolVar(&effective, "effective", false, "show the file and line that each server comes from, and the entries it overrides")
	return cmd
}

// An lsEntry is a server as ls shows it.
type lsEntry struct {
	Name        string `json:"name"`
	Transport   string `json:"transport"`
	Mode        string `json:"mode"`
	Endpoint    string `json:"endpoint"`
	Auth        string `json:"auth"`
	Protocol    string `json:"protocol,omitempty"`   // when it was last started
	AsksRoots   bool   `json:"asks_roots,omitempty"` // as it did when it was last started
	MaxCalls    int    `json:"max_calls,omitempty"`
	Description string `json:"description,omitempty"`
	Off         string `json:"off,omitempty"` // why
	Source      source `json:"source"`
}

func list(cfg *schema.Config) []lsEntry {
	entries := []lsEntry{}
	for _, s := range cfg.Servers {
		stored, off := storedOf(cfg, s), ""
		if s.Off != nil {
			off = s.Off.Why() + "; " + s.Off.Hint
		}
		entries = append(entries, lsEntry{
			Name:        s.Name,
			Transport:   s.Transport,
			Mode:        mode(s),
			Endpoint:    secrets.String(endpoint(s)),
			Auth:        authorization(s),
			Protocol:    stored.Protocol,
			AsksRoots:   stored.AsksRoots && s.Isolation == schema.IsolateNone,
			MaxCalls:    s.MaxCalls,
			Description: s.Description,
			Off:         off,
			Source:      origin(cfg, s.Name),
		})
	}
	return entries
}

func mode(s schema.Server) string {
	switch {
	case s.Off != nil:
		return "off"
	case s.Disabled:
		return "disabled"
	case s.Lazy():
		return "lazy"
	}
	return "eager"
}

// endpoint returns where a server is: its command line or its address, without what
// may be a secret in it.
func endpoint(s schema.Server) string {
	s = s.ReplaceSecrets(func(schema.SecretUse) string { return redact.Mark })
	if s.Transport != schema.Stdio {
		return s.URL
	}
	return shellescape.QuoteCommand(append([]string{s.Command}, s.Args...))
}

// authorization says how requests to a server are authorized.
func authorization(s schema.Server) string {
	if s.Transport == schema.Stdio {
		return "n/a"
	}
	var login *oauth.Login
	if store, err := loginStore(); err == nil {
		if login, err = store.Peek(oauth.KeyOf(s)); err != nil {
			return "oauth: " + err.Error()
		}
	}
	switch {
	case !oauth.Applies(s) && login == nil:
		return "header"
	case !oauth.Applies(s):
		return "oauth: " + login.State(time.Now()) + " (header also set)"
	case s.Auth.Machine():
		return "oauth: " + map[string]string{schema.GrantClientCredentials: "client credentials", schema.GrantJWTBearer: "token of a file"}[s.Auth.Grant]
	}
	return "oauth: " + login.State(time.Now())
}

// origin returns where a server is written, and the files whose entries of the same
// name it overrides.
func origin(cfg *schema.Config, name string) source {
	o, ok := cfg.Origins[name]
	if !ok {
		return source{File: cfg.Path}
	}
	return source{o.File, o.Line, o.Hides}
}

// A source is where a server is written.
type source struct {
	File  string   `json:"file"`
	Line  int      `json:"line,omitempty"`
	Hides []string `json:"hides,omitempty"`
}

func (s source) String() string {
	text := relative(s.File)
	if s.Line > 0 {
		text += fmt.Sprintf(":%d", s.Line)
	}
	for _, file := range s.Hides {
		text += ", over " + relative(file)
	}
	return text
}

// relative shortens the path of a file below the working directory.
func relative(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if below, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(below) {
		return below
	}
	return path
}

func writeEntries(out *terminal.Writer, entries []lsEntry, effective bool) error {
	t := terminal.Table{Header: []string{"NAME", "TRANSPORT", "MODE", "ENDPOINT", "AUTH"}, Shrink: 3}
	anyKnown := slices.ContainsFunc(entries, func(e lsEntry) bool { return e.Protocol != "" })
	if anyKnown {
		t.Header = append(t.Header, "PROTOCOL")
	}
	if effective {
		t.Header = append(t.Header, "FROM")
	}
	for _, e := range entries {
		row := []string{e.Name, e.Transport, e.Mode, terminal.Truncate(e.Endpoint, endpointWidth), e.Auth}
		if anyKnown {
			row = append(row, cmp.Or(e.Protocol, "-"))
		}
		if effective {
			row = append(row, e.Source.String())
		}
		t.Rows = append(t.Rows, row)
	}
	t.Write(out)
	for _, e := range entries {
		if e.Off != "" {
			out.Say("%s is off: %s", e.Name, e.Off)
		}
		if e.AsksRoots {
			out.Printf("%s asks for roots: hosts that share a run have one process of it for each set of roots\n", e.Name)
		}
	}
	return out.Err
}
