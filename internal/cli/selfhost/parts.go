package selfhost

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
)

// Parts are what the modules do in a run.
type Parts []*part

// startParts begins what the modules of ctx do in a run. The end of a Part is an event.
func startParts(ctx context.Context, run module.Run) (Parts, error) {
	if run.Log == nil {
		run.Log = slog.New(slog.DiscardHandler)
	}
	var all Parts
	for _, m := range module.Of(ctx) {
		if m.Start == nil {
			continue
		}
		p, err := m.Start(run)
		if err != nil {
			all.end()
			return nil, err
		}
		if p != nil {
			all = append(all, &part{Part: p, name: m.Name, log: run.Log})
		}
	}
	return all, nil
}

// Follow changes to the settings of another config. A Part that cannot keeps its own.
func (all Parts) Follow(cfg *schema.Config) (err error) {
	for _, p := range all {
		err = errors.Join(err, p.Follow(cfg))
	}
	return err
}

// Web returns the part that serves what the run does, nil if no module has one.
func (all Parts) Web() module.WebPart {
	for _, p := range all {
		if web, ok := p.Part.(module.WebPart); ok {
			return web
		}
	}
	return nil
}

// Own returns the routes of a gateway that parts serve.
func (all Parts) Own() (routes []gateway.OwnRoute) {
	for _, p := range all {
		if own, ok := p.Part.(module.OwnPart); ok {
			routes = append(routes, own)
		}
	}
	return routes
}

func (all Parts) observers() (observers event.Observers) {
	for _, p := range all {
		if hears, ok := p.Part.(event.ToolsObserver); ok {
			observers = append(observers, toolsPart{p, hears})
		} else {
			observers = append(observers, p)
		}
	}
	return observers
}

// extensions returns what the parts add for extensions of MCP.
func (all Parts) extensions() extension.Set {
	var added []module.Part
	for _, p := range all {
		added = append(added, p.Part)
	}
	return extension.Of(added)
}

func (all Parts) end() {
	for _, p := range all {
		p.End()
	}
}

// A part is a Part that hears no more events after it panicked.
type part struct {
	module.Part
	name   string
	log    *slog.Logger
	broken atomic.Bool
}

func (p *part) hear(event func()) {
	if p.broken.Load() {
		return
	}
	defer func() {
		if why := recover(); why != nil {
			p.broken.Store(true)
			p.log.Error("a module failed, and hears no more of this run", "module", p.name, "panic", why, "stack", string(debug.Stack()))
		}
	}()
	event()
}

func (p *part) Called(c event.Call)     { p.hear(func() { p.Part.Called(c) }) }
func (p *part) Opened(s event.Session)  { p.hear(func() { p.Part.Opened(s) }) }
func (p *part) Closed(s event.Session)  { p.hear(func() { p.Part.Closed(s) }) }
func (p *part) Dropped(s event.Session) { p.hear(func() { p.Part.Dropped(s) }) }

// A toolsPart is a part that hears of changed tools, too.
type toolsPart struct {
	*part
	hears event.ToolsObserver
}

func (p toolsPart) Listed(t event.Tools) { p.hear(func() { p.hears.Listed(t) }) }
