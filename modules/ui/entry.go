package ui

import (
	"context"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
)

type entryQuery struct{ Place, Server string }

// A written is the entry of a server as its config file has it, without secrets.
type written struct {
	File  string   `json:"file"`
	Text  string   `json:"text"`
	Paths []string `json:"paths"` // that the verb set takes for it
}

// entry returns the entry of a server, to be edited.
func (s *server) entry(ctx context.Context, q entryQuery) (*written, error) {
	p, err := s.at(ctx, q.Place)
	if err != nil {
		return nil, err
	}
	cfg, err := s.flags(p).Load(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conf.ServerNamed(cfg, q.Server); err != nil {
		return nil, err
	}
	file, err := editfile.OpenConfig(cfg.Origin(q.Server).File)
	if err != nil {
		return nil, err
	}
	entries, err := schema.Entries(file.Path, file.Old)
	if err != nil {
		return nil, err
	}
	w := &written{File: file.Name(), Paths: schema.Paths(file.Path, file.Old, q.Server, module.SectionsOf(ctx))}
	lines := strings.Split(string(mask.File(file.Path, file.Old)), "\n")
	if i := slices.IndexFunc(entries, func(e schema.Entry) bool { return e.Name == q.Server }); i >= 0 && entries[i].Line <= len(lines) {
		w.Text = block(lines[entries[i].Line-1:])
	}
	return w, nil
}

// block returns the first of some lines with those that belong to it, which are indented further or close it.
func block(lines []string) string {
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
	all := lines[:1]
	for _, line := range lines[1:] {
		text, deep := strings.TrimSpace(line), indent(line)
		closes := deep == indent(lines[0]) && text != "" && strings.ContainsAny(text[:1], "}]")
		if text != "" && deep <= indent(lines[0]) && !closes {
			break
		}
		all = append(all[:len(all):len(all)], line[min(deep, indent(lines[0])):])
		if closes {
			break
		}
	}
	return strings.TrimRight(strings.Join(append([]string{strings.TrimLeft(lines[0], " \t")}, all[1:]...), "\n"), "\n ,")
}
