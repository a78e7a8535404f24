package ui

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/conf"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/record"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/runs"
	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth"
)

// A place is a run, or the config of this command if no run has it.
type place struct {
	ID      string    `json:"id"`
	Config  string    `json:"config,omitempty"` // path of the config, "" if the run has none
	Run     *runs.Run `json:"run,omitempty"`
	Error   string    `json:"error,omitempty"` // why the config cannot be read
	Calls   bool      `json:"calls"`           // calls are recorded
	Fixed   bool      `json:"fixed"`           // the page cannot change it
	Servers []entry   `json:"servers"`
}

// An entry is a server in a config.
type entry struct {
	Name        string              `json:"name"`
	Transport   string              `json:"transport"`
	Lazy        bool                `json:"lazy"`
	Disabled    bool                `json:"disabled"`
	Off         string              `json:"off,omitempty"` // the reason
	Description string              `json:"description"`
	Pins        string              `json:"pins"`
	OAuth       bool                `json:"oauth"`
	Known       int                 `json:"known"`            // number of tools in its stored listing
	Denied      int                 `json:"denied,omitempty"` // of which the policy hides so many
	Calls       *activity.ToolStats `json:"calls,omitempty"`
}

// places returns the runs of the user, and the config of this command if no run has it.
func (s *server) places(ctx context.Context, _ struct{}) ([]place, error) {
	all, dirs := []place{}, map[string]string{}
	own := s.ownConfig()
	for _, f := range runs.Find(ctx) {
		if s.run != 0 && f.PID != s.run {
			continue
		}
		p := place{ID: fmt.Sprint(f.PID), Config: f.Config, Run: &f.Run, Fixed: s.fixed}
		if f.Config == own {
			own = ""
		}
		s.read(ctx, &p, f.EnvFile, dirs)
		all = append(all, p)
	}
	if own != "" {
		p := place{ID: "config", Config: own}
		s.read(ctx, &p, s.from.EnvFile, dirs)
		all = append(all, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs = dirs
	return all, nil
}

// ownConfig returns the path of the config of this command, "" without one.
func (s *server) ownConfig() string {
	if s.from == nil {
		return ""
	}
	files, err := s.from.Files()
	if err != nil {
		return ""
	}
	own, _ := filepath.Abs(files[0]) // "" without a working directory
	return own
}

// read reads the config of a place, without the values of secrets, and adds the directory of its record
// to dirs.
func (s *server) read(ctx context.Context, p *place, envFile string, dirs map[string]string) {
	p.Servers = []entry{}
	if p.Config == "" {
		return
	}
	from := conf.Flags{Config: p.Config, EnvFile: envFile, AsWritten: true}
	cfg, err := from.Load(ctx)
	if err != nil {
		p.Error = cli.Secrets.String(err.Error())
		return
	}
	stats := map[string]*activity.ToolStats{}
	if p.Calls = cfg.Activity != nil; p.Calls {
		if dir, err := record.Dir(cfg); err == nil {
			dirs[p.ID], stats = dir, s.statsOf(ctx, dir)
		}
	}
	for _, server := range cfg.Servers {
		stored := conf.StoredOf(cfg, server)
		e := entry{
			Name: server.Name, Transport: server.Transport, Lazy: server.Lazy(), Disabled: server.Disabled,
			Description: cli.Secrets.String(server.Description), Pins: server.Pins, Known: stored.Count, Denied: conf.Denied(cfg, server, stored),
			OAuth: server.Transport != schema.Stdio && oauth.Applies(server), Calls: stats[server.Name],
		}
		if server.Off != nil {
			e.Off = server.Off.Why()
		}
		p.Servers = append(p.Servers, e)
	}
}

// at returns the place with an id, and the flags that load its config.
func (s *server) at(ctx context.Context, id string) (place, *conf.Flags, error) {
	all, err := s.places(ctx, struct{}{})
	if err != nil {
		return place{}, nil, err
	}
	i := slices.IndexFunc(all, func(p place) bool { return p.ID == id })
	if i < 0 {
		return place{}, nil, hint.With(fmt.Errorf("there is no run %s any more", id), "choose another one")
	}
	from := &conf.Flags{Config: all[i].Config, AsWritten: true}
	if all[i].Run != nil {
		from.EnvFile = all[i].Run.EnvFile
	} else {
		from.EnvFile = s.from.EnvFile
	}
	return all[i], from, nil
}
