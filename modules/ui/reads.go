package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/typescript"
	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/costs"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

type readsQuery struct {
	Place, Server string
	Description   *string // replaces the description of Server
	Profile       string  // "" for that of the config
	Host          string  // replaces the config's key host, unless empty
}

// A reading is the text that a model reads at the start of a session.
type reading struct {
	Instructions string        `json:"instructions"`
	Tools        []definition  `json:"tools"`
	Tokens       *costs.Counts `json:"tokens"`
	Profiles     []string      `json:"profiles"` // of the config
	Hosts        []string      `json:"hosts"`    // valid values of Host
}

// knownHosts are the values of the config's key host.
var knownHosts = []string{
	schema.HostClaudeCode, schema.HostClaudeDesktop, schema.HostCodex, schema.HostCopilot, schema.HostCursor, schema.HostGeminiCLI, schema.HostOpencode, schema.HostVSCode,
}

type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Tokens      int             `json:"tokens"`
	Raw         json.RawMessage `json:"definition"`
}

// host runs dynmcp on the config of a place with stored listings, without starting its servers.
// change, if not nil, is applied to the config first. from is the source of the config.
func (s *server) host(ctx context.Context, id, profile string, change func(*schema.Config)) (h *selfhost.Host, from *conf.Flags, err error) {
	p, err := s.at(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if p.Config == "" {
		return nil, nil, errors.New("this run has no config, and so no stored listings")
	}
	from = s.flags(p)
	from.Profile = profile
	cfg, err := from.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	cfg = selfhost.OnlyServers(cfg, conf.Names(conf.Enabled(cfg))...)
	if change != nil {
		change(cfg)
	}
	h, err = selfhost.Start(module.Shown(ctx), cfg, nil) // requests of the page are not calls of a host
	return h, from, err
}

// reads returns the text that a model reads at a place.
func (s *server) reads(ctx context.Context, q readsQuery) (*reading, error) {
	h, from, err := s.host(ctx, q.Place, q.Profile, func(cfg *schema.Config) {
		cfg.Host = cmp.Or(q.Host, cfg.Host)
		describe(cfg, q.Server, q.Description)
	})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	list, err := h.Conn.Call(ctx, "tools/list", nil)
	if err != nil {
		return nil, err
	}
	instructions := h.Conn.ServerInfo().Instructions
	r := &reading{
		Instructions: instructions, Tools: []definition{}, Tokens: costs.CountDefinitions(h.View(), list, instructions),
		Profiles: append([]string{}, from.Profiles(ctx)...), Hosts: knownHosts,
	}
	for raw := range wire.Elements(wire.Get(list, "tools")) {
		name, _ := wire.Text(wire.Get(raw, "name"))
		description, _ := wire.Text(wire.Get(raw, "description"))
		r.Tools = append(r.Tools, definition{name, description, tokens.Count(string(raw)), raw})
	}
	return r, nil
}

// describe gives a server another description, unless that is nil.
func describe(cfg *schema.Config, server string, description *string) {
	for i := range cfg.Servers {
		if cfg.Servers[i].Name == server && description != nil {
			cfg.Servers[i].Description = *description
		}
	}
}

type searchQuery struct {
	Place, Query, Server string
	Description          *string // replaces the description of Server
}

// A searched is the answer of discover_tool to a query, and the tools that were found.
type searched struct {
	Answer string   `json:"answer"`
	Tokens int      `json:"tokens"`
	Tools  []*found `json:"tools"`
	All    int      `json:"all"` // number of known tools
}

type found struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
}

// maxFound limits the tools that a search lists.
const maxFound = 20

// search answers a query like the tool discover_tool. An empty query lists all tools.
func (s *server) search(ctx context.Context, q searchQuery) (*searched, error) {
	h, _, err := s.host(ctx, q.Place, "", func(cfg *schema.Config) { describe(cfg, q.Server, q.Description) })
	if err != nil {
		return nil, err
	}
	defer h.Close()
	tools := h.View().Tools()
	a := &searched{Tools: []*found{}, All: len(tools)}
	add := func(tools []*catalog.Tool) {
		for _, t := range tools {
			a.Tools = append(a.Tools, &found{t.Name, t.Server, t.Upstream, t.Summary})
		}
	}
	if q.Query == "" {
		add(tools)
		return a, nil
	}
	result, err := h.Conn.Call(ctx, "tools/call", fmt.Appendf(nil, `{"name":"discover_tool","arguments":{"query":%s}}`, wire.Quote(q.Query)))
	if err != nil {
		return nil, err
	}
	for part := range wire.Elements(wire.Get(result, "content")) {
		text, _ := wire.Text(wire.Get(part, "text"))
		a.Answer += text
	}
	a.Tokens = activity.Tokens(result)
	matches, _ := h.View().Find(q.Query, maxFound)
	for _, m := range matches {
		add(append([]*catalog.Tool{m.Tool}, m.Also...))
	}
	return a, nil
}

type toolQuery struct{ Place, Name string }

type toolAnswer struct {
	Server     string          `json:"server"`
	Tool       string          `json:"tool"`
	Raw        json.RawMessage `json:"definition"`
	TypeScript string          `json:"typescript"`
	Whole      bool            `json:"whole"` // TypeScript expresses the whole schema
	Input      json.RawMessage `json:"input"`
}

func (s *server) tool(ctx context.Context, q toolQuery) (*toolAnswer, error) {
	h, _, err := s.host(ctx, q.Place, "", nil)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	t, ok := h.View().Tool(q.Name)
	if !ok {
		return nil, fmt.Errorf("there is no tool %q", q.Name)
	}
	text, whole := typescript.Signature(t.Upstream, t.Description, t.InputSchema, t.OutputSchema)
	return &toolAnswer{t.Server, t.Upstream, t.Raw, text, whole, t.InputSchema}, nil
}
