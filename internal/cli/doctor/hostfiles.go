package doctor

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema/hostfile"
)

// checkHostFiles reports what dynmcp reads in the files of hosts: in those of the config, whose warnings are
// reported with it, and in those that import finds.
func (d *doctor) checkHostFiles(ctx context.Context) {
	if d.Cfg.Path == "" {
		return
	}
	for _, path := range d.Cfg.Sources {
		data, err := regular.Read(ctx, path, regular.Large)
		if h := hosts.WhoseFile(path, data); err == nil && h.Name != "" && h.Name != hostfile.Other.Name {
			d.checkHostFile(ctx, h, path, false)
		}
	}
	for _, h := range hosts.All() {
		files, err := h.Files()
		if err != nil {
			return // without a home directory there are none
		}
		for _, path := range files {
			if !d.reads(path) {
				d.checkHostFile(ctx, h, path, true)
			}
		}
	}
}

// reads reports whether a file is one of the config.
func (d *doctor) reads(path string) bool {
	return slices.ContainsFunc(d.Cfg.Sources, func(source string) bool { return hosts.SameFile(source, path) })
}

// checkHostFile reports which servers of a file are read, and which of their keys as others. If notes, it
// reports also what is ignored, and why.
func (d *doctor) checkHostFile(ctx context.Context, h hosts.Host, path string, notes bool) {
	file := h.Title + ": " + conf.Relative(path)
	add := func(level, text string) {
		d.add(finding{Check: aboutHosts, Level: level, Text: file + ": " + text})
	}
	servers, left, err := h.Read(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		add(note, "import cannot read it: "+strings.TrimPrefix(err.Error(), path+": "))
		return
	}
	var read []string
	ignored := left
	for _, s := range servers {
		why := s.Problem()
		if what := s.Aggregator(); what != "" {
			why = "it is " + what
		}
		if why != "" {
			ignored = append(ignored, s.Key+" is left out: "+why)
			continue
		}
		name := s.Key
		if len(s.Renamed) > 0 {
			name += " (" + strings.Join(s.Renamed, ", ") + ")"
		}
		read = append(read, name)
		for _, n := range s.Notes {
			ignored = append(ignored, s.Key+": "+n)
		}
	}
	if len(servers)+len(left) == 0 {
		return // it is no file for servers yet
	}
	text := display.Plural(len(read), "server") + " read"
	if len(read) > 0 {
		text += ": " + strings.Join(read, ", ")
	}
	add(fine, text)
	if notes {
		for _, n := range ignored {
			add(note, n)
		}
	}
}
