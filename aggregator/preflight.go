package aggregator

import (
	"fmt"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
)

// Preflight implements surface.Session. It asks what the judge asks about a call, as far as that is known
// without arguments and without a start.
func (c *toolCall) Preflight(name string) (can bool, says string) {
	view := c.View()
	server, _, _ := strings.Cut(name, "/")
	t, known := view.Tool(name)
	if known {
		server = t.Server
	}
	if why := c.whyUnavailable(server); why != "" {
		return false, why
	}
	if !known {
		return false, view.Texts().WhyUnknown(name)
	}
	can, says = rule.Preflight(c.agg.judge.Served.Policy(), &rule.Call{
		Server: server, Tool: t.Upstream, Class: t.Class, Principal: c.User, Host: c.Info().Host, Surface: schema.ExposeDiscover,
	}, t.Name)
	if can && says == "" && c.agg.fleet.Get(c.Session, server).Status().State != lazy.Ready {
		says = "it starts " + server
	}
	return can, says
}

// whyUnavailable says why calls of a server would fail now, "" if they need not.
func (c *toolCall) whyUnavailable(server string) string {
	for _, s := range c.agg.config().Servers {
		if _, offered := c.View().Server(server); offered && s.Name == server && s.Off != nil {
			return fmt.Sprintf("%s is off: %s", server, s.Off.Why())
		}
	}
	u := c.agg.fleet.Get(c.Session, server)
	if u == nil {
		return ""
	}
	status := u.Status()
	wait := time.Until(status.Due)
	switch {
	case status.State == lazy.Evicted:
		return strings.TrimSpace(c.GivenUp(server))
	case status.State != lazy.Lost:
		return ""
	case ask.WantsLogin(status.Err):
		return fmt.Sprintf("%s wants a login, which the user makes by dynmcp login %s", server, server)
	case wait > 0:
		return fmt.Sprintf("%s failed, because %s; it is tried again in %s", server, c.agg.references.Reason(status.Err), wait.Truncate(time.Second)+time.Second)
	}
	return ""
}
