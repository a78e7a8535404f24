// Package described has the verb describe-servers, which rates how well descriptions distinguish
// their servers, and proposes descriptions.
package described

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// Verb judges the descriptions of servers.
var Verb = cli.Verb{
	Use:    "describe-servers [flags]",
	Hidden: true,
	Short:  "Check server descriptions and suggest better ones",
	Long: `Show what a model reads of each server, for how many of its tools a search over
the descriptions has it among the first three, and a description made of what
its tools are about. Nothing is started: what counts is what is stored.`,
	Example: `  dynmcp doctor --descriptions
  dynmcp doctor --descriptions --json | jq '.[].proposal'`,
	Args:     cli.AtMost(0),
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Flags: conf.Flags{AsWritten: true}}
		asJSON := cmd.Flags().Bool("json", false, "print a JSON array")
		return on.Run(cmd, func(ctx context.Context, _ []string) error { return Servers(ctx, &on, *asJSON) })
	},
}

// Servers writes what the verb describe-servers does.
func Servers(ctx context.Context, t *selfhost.Target, asJSON bool) error {
	conf.SayIfEmpty(t.ErrOut, t.Cfg)
	h, err := selfhost.Start(ctx, selfhost.OnlyServers(t.Cfg, conf.Names(conf.Enabled(t.Cfg))...), t.Log)
	if err != nil {
		return err
	}
	defer h.Close()
	all := judge(h.View(), func(server string) string {
		s, err := conf.ServerNamed(t.Cfg, server)
		if err != nil {
			return ""
		}
		return packages.Description(ctx, s.Command, s.Args)
	})
	if asJSON {
		return terminal.WriteJSON(t.Out, all)
	}
	write(t.Out, all)
	return t.Out.Err
}

// A rating is the rating of one description.
type rating struct {
	Name        string `json:"name"`
	Description string `json:"description"`          // of the config, or else of the server itself
	Found       hits   `json:"found"`                // with the description
	Proposal    string `json:"proposal,omitempty"`   // "" if the tools are unknown
	Proposed    hits   `json:"by_proposal,omitzero"` // with the proposal
}

// hits are the result of searching the descriptions of all servers for the description of each tool
// of one server.
type hits struct {
	Tools int `json:"tools"`
	Whole int `json:"whole"` // tools for which the server is among the best three
	Start int `json:"start"` // the same, with descriptions cut to start
}

// start is the length, in UTF-16 units, to which the catalogue cuts descriptions of about 38 servers.
const start = 28

// judge rates the servers of a view. packaged returns the description of a server's package.
func judge(v *catalog.View, packaged func(server string) string) []rating {
	all := []rating{}
	texts := map[string]string{}
	for _, info := range v.Servers() {
		texts[info.Name] = info.Intro
	}
	for _, info := range v.Servers() {
		s := rating{Name: info.Name, Description: info.Intro, Found: hitsOf(v, texts, info.Name)}
		if s.Proposal = v.Texts().Proposal(info.Name, packaged(info.Name)); s.Proposal != "" {
			texts[info.Name] = s.Proposal
			s.Proposed = hitsOf(v, texts, info.Name)
			texts[info.Name] = info.Intro
		}
		all = append(all, s)
	}
	return all
}

// hitsOf searches the texts of all servers for each tool of one server.
func hitsOf(v *catalog.View, texts map[string]string, server string) (h hits) {
	var names []string
	for _, info := range v.Servers() {
		names = append(names, info.Name)
	}
	among := func(query string, width int) int {
		best := search.Rank(query, names, func(name string) map[string]float64 {
			counts := map[string]float64{}
			search.Words(name+" "+display.Cut(texts[name], width), func(w string) { counts[w]++ })
			return counts
		})
		if slices.Contains(best[:min(len(best), 3)], server) {
			return 1
		}
		return 0
	}
	for _, t := range v.ServerTools(server) {
		h.Tools++
		h.Whole += among(t.Summary, display.LineWidth*2)
		h.Start += among(t.Summary, start)
	}
	return h
}

func write(out *terminal.Writer, all []rating) {
	for _, s := range all {
		out.Printf("%s: %s\n", s.Name, s.Description)
		if s.Found.Tools == 0 {
			out.Printf("  its tools are not known: dynmcp test --store %s lists them\n", s.Name)
			continue
		}
		out.Printf("  %s\n", s.Found)
		if s.Proposal != s.Description {
			out.Printf("  proposal: %s\n  %s\n", s.Proposal, s.Proposed)
		}
	}
}

// String returns the result as part of a sentence.
func (h hits) String() string {
	return fmt.Sprintf("among the first three for %d of its %s, by its first %d characters for %d", h.Whole, display.Plural(h.Tools, "tool"), start, h.Start)
}

// Propose starts servers once, as entries of a config in dir, and returns proposed descriptions and
// the errors of servers that did not start, by name.
func Propose(ctx context.Context, dir string, servers []schema.Server, errOut *terminal.Writer) (proposals map[string]string, failed map[string]error, err error) {
	if len(servers) == 0 {
		return nil, nil, nil
	}
	text := []byte("{}")
	for _, s := range servers {
		if text, err = schema.SetServer("servers.json", text, s); err != nil {
			return nil, nil, err
		}
	}
	cfg, err := schema.LoadText(filepath.Join(dir, "servers.json"), text, module.Load(ctx))
	if err != nil {
		return nil, nil, err
	}
	cli.Secrets.Add(cfg.Secrets()...)
	on := selfhost.Target{Cfg: cfg, ErrOut: errOut}
	h, failed, err := on.Start(ctx, conf.Names(servers)...)
	if err != nil {
		return nil, nil, err
	}
	defer h.Close()
	if err := context.Cause(ctx); err != nil {
		return nil, nil, cli.Interrupted(err)
	}
	proposals = map[string]string{}
	for _, s := range servers {
		if failed[s.Name] == nil {
			proposals[s.Name] = h.View().Texts().Proposal(s.Name, packages.Description(ctx, s.Command, s.Args))
		}
	}
	return proposals, failed, nil
}
