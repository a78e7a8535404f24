package ui

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
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

	Profiles []string `json:"profiles,omitempty"` // of the config
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

// placesAge is for how long an answer of the runs is good for further polls, of other pages. configAge
// is for how long the reading of a config is, unless its files change: it counts stored tools.
const (
	placesAge = time.Second
	configAge = 10 * time.Second
)

// places returns the runs of the user, and the config of this command if no run has it.
func (s *server) places(ctx context.Context, _ struct{}) ([]place, error) {
	s.mu.Lock()
	last, asked := s.last, s.asked
	s.mu.Unlock()
	if last != nil && time.Since(asked) < placesAge {
		return last, nil
	}
	asked = time.Now()
	all, own := []place{}, s.ownConfig()
	for _, f := range runs.Find(ctx, 0) {
		if s.run != 0 && f.PID != s.run {
			continue
		}
		if f.Config == own {
			own = ""
		}
		all = append(all, s.placeOf(f))
	}
	if own != "" {
		all = append(all, place{ID: ownID, Config: own})
	}
	for i := range all {
		s.describe(ctx, &all[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.asked = all, asked
	maps.DeleteFunc(s.configs, func(_ source, d *loaded) bool { return time.Since(d.read) > 2*configAge })
	return all, nil
}

// ownID is the id of the place that is the config of this command.
const ownID = "config"

func (s *server) placeOf(f runs.Found) place {
	return place{ID: fmt.Sprint(f.PID), Config: f.Config, Run: &f.Run, Fixed: s.fixed}
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

// describe adds what the config of a place says, and the statistics of its calls.
func (s *server) describe(ctx context.Context, p *place) {
	p.Servers = []entry{}
	if p.Config == "" {
		return
	}
	d := s.configOf(ctx, p)
	p.Error, p.Calls, p.Profiles = d.problem, d.records, d.profiles
	stats := map[string]*activity.ToolStats{}
	if d.noRecord == nil {
		stats = s.statsOf(ctx, d.record)
	}
	for _, e := range d.servers {
		e.Calls = stats[e.Name]
		p.Servers = append(p.Servers, e)
	}
}

// A source is where a config is read from.
type source struct{ config, envFile string }

// A loaded is what was read of a config, without the values of secrets.
type loaded struct {
	from     conf.Flags
	read     time.Time
	problem  string // why it cannot be read
	servers  []entry
	records  bool   // calls are recorded
	record   string // the directory of the record
	noRecord error  // why there is none
	profiles []string
}

// configOf returns what the config of a place says. It is loaded only if its files have changed, or
// from time to time.
func (s *server) configOf(ctx context.Context, p *place) *loaded {
	of := source{p.Config, s.flags(p).EnvFile}
	s.mu.Lock()
	d := s.configs[of]
	s.mu.Unlock()
	if d != nil && d.from.Read != nil && time.Since(d.read) < configAge {
		if _, changed := d.from.Read.Reread(ctx); !changed {
			return d
		}
	}
	d = load(ctx, *s.flags(p))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs[of] = d
	return d
}

func load(ctx context.Context, from conf.Flags) *loaded {
	d := &loaded{from: from, read: time.Now()}
	cfg, err := d.from.Load(ctx)
	if err != nil {
		d.problem, d.noRecord = cli.Secrets.String(err.Error()), err
		return d
	}
	d.records = record.Of(cfg) != nil
	d.record, d.noRecord = record.Dir(cfg)
	hidden := conf.HiddenBy(cfg)
	d.profiles = slices.Sorted(maps.Keys(cfg.Profiles))
	for _, server := range cfg.Servers {
		e := entry{
			Name: server.Name, Transport: server.Transport, Lazy: server.Lazy(), Disabled: server.Disabled,
			Description: cli.Secrets.String(server.Description), Pins: approval.Needed(server),
			OAuth: server.Transport != schema.Stdio && oauth.Applies(server),
		}
		e.Known, e.Denied = conf.Count(server, conf.StoredOf(cfg, server), hidden)
		if server.Off != nil {
			e.Off = server.Off.Why()
		}
		d.servers = append(d.servers, e)
	}
	return d
}

// flags returns the flags that load the config of a place.
func (s *server) flags(p *place) *conf.Flags {
	from := &conf.Flags{Config: p.Config, AsWritten: true}
	if p.Run != nil {
		from.EnvFile = p.Run.EnvFile
	} else {
		from.EnvFile = s.from.EnvFile
	}
	return from
}

// at returns the place with an id as it is now, without its servers. It asks no run but that one.
func (s *server) at(ctx context.Context, id string) (*place, error) {
	if own := s.ownConfig(); id == ownID && own != "" {
		return &place{ID: ownID, Config: own}, nil
	}
	if pid, err := strconv.Atoi(id); err == nil && (s.run == 0 || pid == s.run) {
		for _, f := range runs.Find(ctx, pid) {
			p := s.placeOf(f)
			return &p, nil
		}
	}
	return nil, hint.With(fmt.Errorf("there is no run %s any more", id), "choose another one")
}

// lately returns the place with an id, if it is one of the last answer to a page, as it was then.
func (s *server) lately(ctx context.Context, id string) (*place, error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if i := slices.IndexFunc(last, func(p place) bool { return p.ID == id }); i >= 0 {
		return &last[i], nil
	}
	return s.at(ctx, id)
}
