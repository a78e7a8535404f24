package upstream

import (
	"fmt"

	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// confine makes the sandbox of a child, if its entry requests one, and returns its environment.
// Refused connections are reported as lines of the child's stderr.
func (l *childLink) confine(c *Conn) (env []string, err error) {
	if !c.server.Sandbox.On {
		return append(command.Environment(c.server.Env, c.server.InheritEnv), c.opts.Env...), nil
	}
	confined := command.Confined(c.server)
	confined.Trace = c.opts.Trace
	l.sandbox, err = sandbox.New(confined, c.log, func(why string) {
		l.stderrTail.Add("dynmcp: " + why)
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return append(append(confined.Env, c.opts.Env...), l.sandbox.Env()...), nil
}
