package main

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dynmcp/schema"
)

// endpointWidth is how much of a command line or address a list shows.
const endpointWidth = 48

func lsCommand() *cobra.Command {
	var from configFlags
	var asJSON, effective bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the servers of the config",
		Long: `List the servers of the config in the order of the file. Nothing is started and
nothing is connected to. Values that came from variables are shown as ***.`,
		Example: `  dynmcp ls
  dynmcp ls --json | jq -r '.[] | select(.mode == "lazy").name'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := from.load()
			if err != nil {
				return err
			}
			entries := list(cfg)
			if asJSON {
				return writeJSON(stdout(cmd), entries)
			}
			writeEntries(stdout(cmd), entries, effective)
			return nil
		},
	}
	from.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, endpoints not cut")
	cmd.Flags().BoolVar(&effective, "effective", false, "show the file that each server comes from")
	return cmd
}

// An lsEntry is a server as ls shows it.
type lsEntry struct {
	Name        string `json:"name"`
	Transport   string `json:"transport"`
	Mode        string `json:"mode"`
	Endpoint    string `json:"endpoint"`
	Auth        string `json:"auth"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source"`
}

func list(cfg *schema.Config) []lsEntry {
	entries := []lsEntry{}
	for _, s := range cfg.Servers {
		entries = append(entries, lsEntry{
			Name:        s.Name,
			Transport:   s.Transport,
			Mode:        mode(s),
			Endpoint:    redacted(cfg, endpoint(s)),
			Auth:        authorization(s),
			Description: s.Description,
			Source:      cfg.Path,
		})
	}
	return entries
}

func mode(s schema.Server) string {
	switch {
	case s.Disabled:
		return "disabled"
	case s.Lazy():
		return "lazy"
	}
	return "eager"
}

// endpoint is where a server is: its command line or its address.
func endpoint(s schema.Server) string {
	if s.Transport != schema.Stdio {
		return s.URL
	}
	words := []string{s.Command}
	for _, arg := range s.Args {
		if arg == "" || strings.ContainsAny(arg, " \t\n") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// authorization says how requests to a server prove who sends them.
func authorization(s schema.Server) string {
	if s.Transport == schema.Stdio {
		return "n/a"
	}
	for name := range s.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return "header"
		}
	}
	return "none"
}

// leastSecret is the length from which a value is taken out of texts: shorter
// ones are flags and ports, and are part of every other word.
const leastSecret = 4

// redacted takes out of a text what must not be shown.
func redacted(cfg *schema.Config, text string) string {
	secrets := slices.Clone(cfg.Secrets())
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range secrets {
		if len(secret) >= leastSecret {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

func writeEntries(s *screen, entries []lsEntry, effective bool) {
	t := table{header: []string{"NAME", "TRANSPORT", "MODE", "ENDPOINT", "AUTH"}, shrink: 3}
	if effective {
		t.header = append(t.header, "FROM")
	}
	for _, e := range entries {
		row := []string{e.Name, e.Transport, e.Mode, truncate(e.Endpoint, endpointWidth), e.Auth}
		if effective {
			row = append(row, e.Source)
		}
		t.rows = append(t.rows, row)
	}
	t.write(s)
}
