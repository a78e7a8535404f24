package configcmd

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/conf"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/confine"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/login"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth"
)

// endpointWidth is the displayed width of a command line or address.
const endpointWidth = 48

// List lists the servers of a config.
var List = cli.Verb{
	Use:   "ls [flags]",
	Short: "List the servers of the config",
	Long: `List the servers of the config in the order of the file. Nothing is started or
connected to. Secrets and values of variables are not shown. The protocol version is
the one that a server spoke when it was last started.`,
	Example: `  dynmcp ls
  dynmcp ls --json | jq -r '.[] | select(.mode == "lazy").name'`,
	New: func(cmd *cobra.Command) cli.Run {
		from := conf.Flags{AsWritten: true}
		from.Add(cmd)
		asJSON := cmd.Flags().Bool("json", false, "print a JSON array, with endpoints in full")
		effective := cmd.Flags().Bool("effective", false, "show the file and line that each server comes from, and the entries it overrides")
		return func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.Load(cmd.Context())
			if err != nil {
				return err
			}
			entries := list(cfg)
			if *asJSON {
				return terminal.WriteJSON(cli.Stdout(cmd), entries)
			}
			if conf.SayIfEmpty(cli.Stderr(cmd), cfg); len(entries) == 0 {
				return nil
			}
			return writeEntries(cli.Stdout(cmd), entries, *effective)
		}
	},
}

// An lsEntry is a server in the output of ls.
type lsEntry struct {
	Name        string        `json:"name"`
	Transport   string        `json:"transport"`
	Mode        string        `json:"mode"`
	Endpoint    string        `json:"endpoint"`
	Auth        string        `json:"auth"`
	Protocol    string        `json:"protocol,omitempty"`   // at the last start of the server
	AsksRoots   bool          `json:"asks_roots,omitempty"` // at the last start of the server
	MaxCalls    int           `json:"max_calls,omitempty"`
	Sandbox     string        `json:"sandbox_warning,omitempty"` // limits that this system cannot enforce
	Description string        `json:"description,omitempty"`
	Off         string        `json:"off,omitempty"` // the reason
	Source      schema.Origin `json:"source"`
}

func list(cfg *schema.Config) []lsEntry {
	entries := []lsEntry{}
	for _, s := range cfg.Servers {
		stored, off := conf.StoredOf(cfg, s), ""
		if s.Off != nil {
			off = s.Off.Why() + "; " + s.Off.Hint
		}
		entries = append(entries, lsEntry{
			Name:        s.Name,
			Transport:   s.Transport,
			Mode:        mode(s),
			Endpoint:    cli.Secrets.String(conf.Endpoint(s)),
			Auth:        authorization(s),
			Protocol:    stored.Protocol,
			AsksRoots:   stored.AsksRoots && s.Isolation == schema.IsolateNone,
			MaxCalls:    s.MaxCalls,
			Sandbox:     confine.Warning(s),
			Description: s.Description,
			Off:         off,
			Source:      cfg.Origin(s.Name),
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

func authorization(s schema.Server) string {
	if s.Transport == schema.Stdio {
		return "n/a"
	}
	var kept *oauth.Login
	if store, err := login.Store(); err == nil {
		if kept, err = store.Peek(oauth.KeyOf(s)); err != nil {
			return "oauth: " + err.Error()
		}
	}
	switch {
	case !oauth.Applies(s) && kept == nil:
		return "header"
	case !oauth.Applies(s):
		return "oauth: " + kept.State(time.Now()) + " (header also set)"
	case s.Auth.Machine():
		return "oauth: " + map[string]string{schema.GrantClientCredentials: "client credentials", schema.GrantJWTBearer: "token of a file"}[s.Auth.Grant]
	}
	return "oauth: " + kept.State(time.Now())
}

// place formats the file and line of an entry, and the files whose entries it overrides.
func place(o schema.Origin) string {
	text := conf.Relative(o.File)
	if o.Line > 0 {
		text += fmt.Sprintf(":%d", o.Line)
	}
	for _, file := range o.Hides {
		text += ", over " + conf.Relative(file)
	}
	return text
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
			row = append(row, place(e.Source))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Write(out)
	for _, e := range entries {
		if e.Off != "" {
			out.Say("%s is off: %s", e.Name, e.Off)
		}
		if e.Sandbox != "" {
			out.Say("%s: %s", e.Name, e.Sandbox)
		}
		if e.AsksRoots {
			out.Printf("%s asks for roots: hosts that share a run have one process of it for each set of roots\n", e.Name)
		}
	}
	return out.Err
}
