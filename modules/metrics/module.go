package metrics

import (
	_ "embed"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
)

// Module watches runs that many hosts share: /metrics, traces, and what the debug page shows.
var Module = module.Module{Name: "metrics", Start: start, Tabs: []module.Tab{{Name: "live", Live: true, Script: page}}}

//go:embed page.js
var page string

func start(run module.Run) (module.Part, error) {
	if !run.Shared {
		return nil, nil
	}
	options := MonitorOptions{Version: cli.Version, Replica: run.Replica, Redact: cli.Redacted}
	t, err := newTracer(cli.Version, run.Replica, run.Log)
	if err != nil {
		run.Log.Warn("no traces are sent", "err", err)
	}
	if t != nil {
		options.Tracer = t
	}
	return New(options), nil
}
