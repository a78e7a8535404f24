package aggregator

import (
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/scope"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/internal/policy"
)

// judged is the run for the judge. It implements judge.Served.
type judged struct{ agg *Aggregator }

func (j judged) Policy() *policy.Rules           { return j.agg.state.Load().policy }
func (j judged) OnChange() string                { return j.agg.config().Catalog.OnChange }
func (j judged) Guard(server string) *pins.Guard { return j.agg.state.Load().pins.Guard(server) }
func (j judged) Offered(server string) bool      { return fleet.IsOffered(j.agg.set.Get(server)) }

func (j judged) Settling(s scope.Scope, server string) bool {
	return wait{session: session{s, j.agg}, server: server, least: callWait}.isPending()
}

func (j judged) UnknownTool(s scope.Scope, name string) string {
	return surface.UnknownTool(surfaceCall{request: request{session: session{s, j.agg}}}, name)
}

func (j judged) UnknownServer(s scope.Scope, name string) string {
	return surface.UnknownServer(surfaceCall{request: request{session: session{s, j.agg}}}, name)
}
