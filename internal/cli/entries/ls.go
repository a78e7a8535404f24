package entries

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// endpointWidth is the displayed width of a command line or address.
const endpointWidth = 48

// List lists the servers of a config.
var List = cli.Verb{
	Use:   "ls [flags]",
	Group: cli.Look, Aliases: []string{"list", "status", "servers"},
	Short: "List the servers of the config",
	Long: `List the servers of the config in the order of the file. Nothing is started or
connected to. Secrets and values of variables are not shown. STATE is that of the last
start, in a run that serves this config or in an earlier one; TOOLS were then listed.`,
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
			files, _ := from.Files() // no run has none
			entries := list(cmd.Context(), cfg, started(cmd.Context(), files))
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
	Name        string          `json:"name"`
	Transport   string          `json:"transport"`
	Mode        string          `json:"mode"`
	Endpoint    string          `json:"endpoint"`
	Auth        string          `json:"auth"`
	Protocol    string          `json:"protocol,omitempty"`   // at the last start of the server
	State       string          `json:"state,omitempty"`      // ok, failed, off or disabled; none if it was never started
	FailedAt    *time.Time      `json:"failed_at,omitempty"`  // when starts began to fail
	Error       string          `json:"error,omitempty"`      // of the last start
	Tools       int             `json:"tools,omitempty"`      // in the last listing
	Denied      int             `json:"denied,omitempty"`     // of the tools, those that the policy hides
	AsksRoots   bool            `json:"asks_roots,omitempty"` // at the last start of the server
	MaxCalls    int             `json:"max_calls,omitempty"`
	Limits      json.RawMessage `json:"limits,omitempty"`          // those that differ from the defaults, by key
	Sandbox     string          `json:"sandbox_warning,omitempty"` // limits that this system cannot enforce
	Command     string          `json:"command_warning,omitempty"` // a command that holds its arguments
	Description string          `json:"description,omitempty"`
	Off         string          `json:"off,omitempty"` // the reason
	Source      schema.Origin   `json:"source"`
}

// started returns the servers that were started in runs of a config, by name, of the newest run.
func started(ctx context.Context, files []string) map[string]runs.Server {
	found := map[string]runs.Server{}
	for _, run := range runs.Find(ctx, 0) {
		if !slices.ContainsFunc(files, func(path string) bool { return hosts.SameFile(path, run.Config) }) {
			continue
		}
		for _, s := range run.Servers {
			if s.Starts > 0 || !s.FailedAt.IsZero() {
				found[s.Name] = s
			}
		}
	}
	return found
}

func list(ctx context.Context, cfg *schema.Config, started map[string]runs.Server) []lsEntry {
	entries, hidden := []lsEntry{}, conf.HiddenBy(cfg)
	for _, s := range cfg.Servers {
		stored, off := conf.StoredOf(cfg, s), ""
		if s.Off != nil {
			off = s.Off.Why() + "; " + s.Off.Hint
		}
		now, ran := started[s.Name]
		unlimited, _ := conf.Unlimited(ctx, s)
		e := lsEntry{
			Name:        s.Name,
			Transport:   s.Transport,
			Mode:        mode(s),
			Endpoint:    cli.Secrets.String(conf.Endpoint(s)),
			Auth:        authorization(s),
			Protocol:    stored.Protocol,
			AsksRoots:   stored.AsksRoots && s.Isolation == schema.IsolateNone,
			MaxCalls:    s.MaxCalls,
			Limits:      s.Limits(),
			Sandbox:     unlimited,
			Command:     commandWarning(s),
			Description: s.Description,
			Off:         off,
			Source:      cfg.Origin(s.Name),
		}
		e.Tools, e.Denied = conf.Count(s, stored, hidden)
		switch {
		case s.Off != nil || s.Disabled:
			e.State = e.Mode
		case !now.FailedAt.IsZero():
			e.State, e.FailedAt, e.Error = event.Failed, &now.FailedAt, now.Err
		case ran:
			e.State = "ok"
		default:
			if why, at := conf.FailureOf(cfg, s); why != "" {
				e.State, e.FailedAt, e.Error = event.Failed, &at, cli.Secrets.String(why)
			} else if stored.Protocol != "" {
				e.State = "ok"
			}
		}
		entries = append(entries, e)
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

// commandWarning says that the command of a server is not a program alone, or "".
func commandWarning(s schema.Server) string {
	if s.Transport != schema.Stdio || s.Off != nil {
		return ""
	}
	if failed, ok := errors.AsType[*transports.Failure](command.CheckWords(s)); ok {
		return failed.Cause.Error() + "; " + failed.Hint
	}
	return ""
}

func authorization(s schema.Server) string {
	if s.Transport == schema.Stdio {
		return "n/a"
	}
	var kept *logins.Login
	if store, err := login.Store(); err == nil {
		if kept, err = store.Peek(logins.KeyOf(s)); err != nil {
			return "oauth: " + err.Error()
		}
	}
	stated := ""
	if text := oauth.Stated(s.Auth); text != "" {
		stated = "; stated: " + text
	}
	switch {
	case !oauth.Applies(s) && kept == nil:
		return "header"
	case !oauth.Applies(s):
		return "oauth: " + kept.State(time.Now()) + " (header also set)"
	case s.Auth.Machine():
		return "oauth: " + map[string]string{schema.GrantClientCredentials: "client credentials", schema.GrantJWTBearer: "token of a file"}[s.Auth.Grant] + stated
	}
	return "oauth: " + kept.State(time.Now()) + stated
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

// state formats how the last start ended.
func (e lsEntry) state(now time.Time) string {
	if e.FailedAt == nil {
		return cmp.Or(e.State, "-")
	}
	ago := now.Sub(*e.FailedAt)
	if ago < 2*time.Hour {
		return fmt.Sprintf("failed %d min ago", int(ago.Minutes()))
	}
	return fmt.Sprintf("failed %d h ago", int(ago.Hours()))
}

func (e lsEntry) tools() string {
	switch {
	case e.Protocol == "" && e.Tools == 0:
		return "-"
	case e.Denied > 0:
		return fmt.Sprintf("%d (%d denied)", e.Tools, e.Denied)
	}
	return fmt.Sprint(e.Tools)
}

// endpoint formats the endpoint, with the transport if the address does not say it.
func (e lsEntry) endpoint() string {
	if e.Transport == schema.SSE {
		return "sse " + e.Endpoint
	}
	return e.Endpoint
}

func writeEntries(out *terminal.Writer, entries []lsEntry, effective bool) error {
	t := terminal.Table{Header: []string{"NAME", "STATE", "MODE", "TOOLS", "ENDPOINT"}, Shrink: 4}
	remote := slices.ContainsFunc(entries, func(e lsEntry) bool { return e.Transport != schema.Stdio })
	if remote {
		t.Header = append(t.Header, "AUTH")
	}
	if effective {
		t.Header = append(t.Header, "FROM")
	}
	for _, e := range entries {
		if e.State == e.Mode {
			e.Mode = "-"
		}
		row := []string{e.Name, e.state(time.Now()), e.Mode, e.tools(), terminal.Truncate(e.endpoint(), endpointWidth)}
		if remote {
			row = append(row, e.Auth)
		}
		if effective {
			row = append(row, place(e.Source))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Write(out)
	for _, e := range entries {
		if e.Error != "" {
			out.Say("%s failed to start: %s", e.Name, e.Error)
		}
		if e.Off != "" {
			out.Say("%s is off: %s", e.Name, e.Off)
		}
		if e.Sandbox != "" {
			out.Say("%s: %s", e.Name, e.Sandbox)
		}
		if e.Command != "" {
			out.Say("%s: %s", e.Name, e.Command)
		}
		if e.AsksRoots {
			out.Printf("%s asks for roots: hosts that share a run have one process of it for each set of roots\n", e.Name)
		}
	}
	return out.Err
}
