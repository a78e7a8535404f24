package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"dynmcp/catalog"
	"dynmcp/schema"
)

// A contextCost is what a host reads of the tools: with every server in its own
// config, and through dynmcp at the start of a session.
type contextCost struct {
	Servers []serverCost `json:"servers"`
	Alone   size         `json:"alone"`
	Through size         `json:"dynmcp"` // with dynmcp's own tools
}

// A serverCost is the part of one server.
type serverCost struct {
	Name    string `json:"name"`
	Lazy    bool   `json:"lazy"`
	Tools   int    `json:"tools"`
	Alone   size   `json:"alone"`
	Through size   `json:"dynmcp"`
}

// A size is counted in UTF-16 units, as hosts count.
type size struct {
	Characters int `json:"characters"`
	Tokens     int `json:"tokens"` // estimated
}

// charactersPerToken is a rule of thumb for English and JSON.
const charactersPerToken = 4

func sizeOf(texts ...string) size {
	n := 0
	for _, text := range texts {
		n += len(utf16.Encode([]rune(text)))
	}
	return size{n, (n + charactersPerToken - 1) / charactersPerToken}
}

// startAll starts every server, in two steps: those that are there at the start of
// a session, whose cost is measured, and then the lazy ones.
func (d *doctor) startAll(ctx context.Context) {
	servers := enabled(d.cfg)
	if len(servers) == 0 {
		return
	}
	waiting, ready := showStarting(d.errOut, names(servers))
	defer waiting.end()
	if d.cfg.SingleWrap && d.hasProblem(aboutCommands, servers[0].Name) {
		return
	}
	h, err := startSelf(ctx, d.cfg, d.log)
	if err != nil {
		only := ""
		if d.cfg.SingleWrap {
			only = servers[0].Name
		}
		d.addError(aboutServers, only, err)
		return
	}
	defer h.close()
	var eager, lazy []schema.Server
	for _, s := range servers {
		if s.Lazy() {
			lazy = append(lazy, s)
		} else {
			eager = append(eager, s)
		}
	}
	failed := d.startServers(ctx, h, ready, eager)
	tools, err := h.conn.Call(ctx, "tools/list", nil)
	if err != nil {
		d.addError(aboutServers, "", interrupted(err))
		return
	}
	maps.Copy(failed, d.startServers(ctx, h, ready, lazy))

	view := h.agg.View()
	for _, s := range servers {
		switch err := failed[s.Name]; {
		case err == nil:
			status, _ := view.Server(s.Name)
			d.add(finding{Check: aboutServers, Level: fine, Server: s.Name, Text: "starts, has " + count(status.Tools, "tool")})
		case !d.hasProblem(aboutCommands, s.Name):
			d.addError(aboutServers, s.Name, err)
		}
	}
	for _, w := range slices.Concat(view.Collisions(), view.Warnings()) {
		d.add(finding{Check: aboutServers, Level: warning, Text: w})
	}
	d.Host = costOf(view, tools, h.conn.ServerInfo().Instructions)
}

func (d *doctor) startServers(ctx context.Context, h *selfHost, ready func(string), servers []schema.Server) (failed map[string]error) {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	return h.load(ctx, ready, names(servers)...)
}

// costOf measures. tools and instructions are what dynmcp answered when the
// session began; v is what is known by now.
func costOf(v *catalog.View, tools json.RawMessage, instructions string) *contextCost {
	cost := &contextCost{Through: sizeOf(string(tools), instructions)}
	var list struct {
		Tools []struct{ Description string }
	}
	_ = json.Unmarshal(tools, &list) // our own answer: it is valid
	descriptions := ""
	for _, t := range list.Tools {
		descriptions += t.Description + "\n"
	}
	for _, info := range v.Servers() {
		if !info.Loaded {
			continue
		}
		var definitions []string
		for _, t := range v.ServerTools(info.Name) {
			definitions = append(definitions, string(t.Raw))
		}
		s := serverCost{
			Name: info.Name, Lazy: info.Lazy, Tools: len(definitions),
			Alone:   sizeOf(`{"tools":[`, strings.Join(definitions, ","), `]}`, info.Instructions),
			Through: sizeOf(linesOf(descriptions, info.Name)...),
		}
		cost.Servers = append(cost.Servers, s)
		cost.Alone.Characters += s.Alone.Characters
		cost.Alone.Tokens += s.Alone.Tokens
	}
	return cost
}

// linesOf returns the lines of the catalogue that are about a server: its own, and
// those of its tools.
func linesOf(catalogue, server string) []string {
	var lines []string
	for line := range strings.Lines(catalogue) {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "- "), server)
		if ok && rest != "" && strings.ContainsAny(rest[:1], "/: \n") {
			lines = append(lines, line)
		}
	}
	return lines
}

func (c *contextCost) write(out *terminal) {
	out.printf("\n")
	out.heading("What a host reads of the tools when it starts, in characters and estimated tokens")
	t := table{header: []string{"SERVER", "TOOLS", "ALONE", "TOKENS", "DYNMCP", "TOKENS"}, right: 1}
	add := func(name string, s serverCost) {
		t.rows = append(t.rows, []string{name, fmt.Sprint(s.Tools),
			grouped(s.Alone.Characters), grouped(s.Alone.Tokens),
			grouped(s.Through.Characters), grouped(s.Through.Tokens)})
	}
	tools := 0
	for _, s := range c.Servers {
		name := s.Name
		if s.Lazy {
			name += " (lazy)"
		}
		tools += s.Tools
		add(name, s)
	}
	add("all, with dynmcp's own", serverCost{Tools: tools, Alone: c.Alone, Through: c.Through})
	t.write(out)
	switch saved := c.Alone.Tokens - c.Through.Tokens; {
	case saved > 0:
		out.say("\ndynmcp saves about %s of %s tokens at the start of each session (%.1f%%).",
			grouped(saved), grouped(c.Alone.Tokens), 100*float64(saved)/float64(c.Alone.Tokens))
	case len(c.Servers) > 0:
		out.say("\nWith so few tools dynmcp saves no tokens: it adds about %s at the start of each session.", grouped(-saved))
	}
}

// grouped writes a number with a comma between thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
