package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"dynmcp/catalog"
)

// A view is what a host reads of the tools: with every server in its own
// config, and through dynmcp at the start of a session.
type view struct {
	Servers []share `json:"servers"`
	Alone   size    `json:"alone"`
	Through size    `json:"dynmcp"` // with dynmcp's own tools
}

// A share is one server's part of a view.
type share struct {
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

// perToken is how many characters of English and JSON make a token, by rule of
// thumb.
const perToken = 4

func sizeOf(texts ...string) size {
	n := 0
	for _, text := range texts {
		n += len(utf16.Encode([]rune(text)))
	}
	return size{n, (n + perToken - 1) / perToken}
}

// start starts every server, in two steps: those that are there at the start
// of a session, whose sight is measured, and then the lazy ones.
func (d *doctor) start(ctx context.Context) {
	waiting := showProgress(d.errOut, "starting "+strings.Join(enabled(d.cfg), ", "))
	defer waiting.end()
	if d.cfg.SingleWrap && d.knows(aboutCommands, d.cfg.Servers[0].Name) {
		return
	}
	h, err := startSelf(ctx, d.cfg, d.log)
	if err != nil {
		only := ""
		if d.cfg.SingleWrap {
			only = d.cfg.Servers[0].Name
		}
		d.failed(aboutServers, only, err)
		return
	}
	defer h.close()
	var eager, lazy []string
	for _, s := range d.servers() {
		if s.Lazy() {
			lazy = append(lazy, s.Name)
		} else {
			eager = append(eager, s.Name)
		}
	}
	failed := d.startServers(ctx, h, eager)
	tools, err := h.conn.Call(ctx, "tools/list", nil)
	if err != nil {
		d.failed(aboutServers, "", interrupted(err))
		return
	}
	maps.Copy(failed, d.startServers(ctx, h, lazy))
	d.loaded(h.agg.View(), failed)
	d.Host = newView(h.agg.View(), tools, h.conn.ServerInfo().Instructions)
}

func (d *doctor) startServers(ctx context.Context, h *selfHost, servers []string) (failed map[string]error) {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	return h.load(ctx, servers...)
}

// loaded tells how the servers fared, in config order.
func (d *doctor) loaded(v *catalog.View, failed map[string]error) {
	for _, s := range d.servers() {
		if err := failed[s.Name]; err != nil {
			if d.knows(aboutCommands, s.Name) {
				continue
			}
			d.failed(aboutServers, s.Name, err)
			continue
		}
		info, _ := v.Server(s.Name)
		d.found(finding{Check: aboutServers, Level: fine, Server: s.Name, Text: "starts, has " + count(info.Tools, "tool")})
	}
	for _, w := range slices.Concat(v.Collisions(), v.Warnings()) {
		d.found(finding{Check: aboutServers, Level: warning, Text: w})
	}
}

// knows reports whether a check found a problem with a server already.
func (d *doctor) knows(check, server string) bool {
	return slices.ContainsFunc(d.Findings, func(f finding) bool {
		return f.Check == check && f.Server == server && f.Level == problem
	})
}

// newView measures. tools and instructions are what dynmcp answered when the
// session began; v is what is known by now.
func newView(v *catalog.View, tools json.RawMessage, instructions string) *view {
	sight := &view{Through: sizeOf(string(tools), instructions)}
	catalogue := described(tools)
	for _, info := range v.Servers() {
		if !info.Known {
			continue
		}
		var definitions []string
		for _, t := range v.ServerTools(info.Name) {
			definitions = append(definitions, string(t.Raw))
		}
		s := share{
			Name: info.Name, Lazy: info.Lazy, Tools: len(definitions),
			Alone:   sizeOf(`{"tools":[`, strings.Join(definitions, ","), `]}`, info.Instructions),
			Through: sizeOf(linesOf(catalogue, info.Name)...),
		}
		sight.Servers = append(sight.Servers, s)
		sight.Alone.Characters += s.Alone.Characters
		sight.Alone.Tokens += s.Alone.Tokens
	}
	return sight
}

// described joins the descriptions of the tools that a host sees.
func described(tools json.RawMessage) string {
	var list struct {
		Tools []struct{ Description string }
	}
	_ = json.Unmarshal(tools, &list) // our own answer: it is valid
	var texts []string
	for _, t := range list.Tools {
		texts = append(texts, t.Description)
	}
	return strings.Join(texts, "\n")
}

// linesOf returns the lines of the catalogue that are about a server.
func linesOf(catalogue, server string) []string {
	var lines []string
	for line := range strings.Lines(catalogue) {
		rest, ok := strings.CutPrefix(line, "- "+server)
		if ok && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ":")) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (v *view) write(s *screen) {
	s.printf("\nWhat a host reads of the tools when it starts, in characters and estimated tokens\n")
	t := table{header: []string{"SERVER", "TOOLS", "ALONE", "TOKENS", "DYNMCP", "TOKENS"}}
	tools := 0
	for _, one := range v.Servers {
		name := one.Name
		if one.Lazy {
			name += " (lazy)"
		}
		tools += one.Tools
		t.rows = append(t.rows, one.row(name))
	}
	t.rows = append(t.rows, share{Tools: tools, Alone: v.Alone, Through: v.Through}.row("all, with dynmcp's own"))
	t.write(s)
}

func (s share) row(name string) []string {
	return []string{name, fmt.Sprint(s.Tools),
		fmt.Sprint(s.Alone.Characters), fmt.Sprint(s.Alone.Tokens),
		fmt.Sprint(s.Through.Characters), fmt.Sprint(s.Through.Tokens)}
}
