package upstream

import (
	"fmt"

	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Confined returns a server as a sandbox has it, and the environment that it starts with.
func Confined(server schema.Server) sandbox.Server {
	inherit := server.InheritEnv
	if box := server.Sandbox; box.On && (!box.Env.None || len(inherit.Names) == 0) {
		inherit = box.Env
	}
	s := sandbox.Server{
		Name: server.Name, Dir: server.Cwd, DirSet: server.Cwd != "",
		Env:      command.Environment(server.Env, inherit),
		Installs: command.RunsPackage(server.Command, server.Args),
		Read:     server.Sandbox.Read, Write: server.Sandbox.Write, BestEffort: server.Sandbox.BestEffort,
	}
	switch network := server.Sandbox.Network; {
	case network.None:
		s.Network = sandbox.NoNetwork
	case len(network.Hosts) > 0:
		s.Network, s.Hosts = sandbox.OnlyByProxy, network.Hosts
	}
	s.Program, _ = command.Find(server.Command, server.Cwd, s.Env) // its start says that it is not there
	return s
}

// confine makes the sandbox of a child and returns its environment. Connections that it
// refuses are lines of the child's stderr.
func (l *childLink) confine(c *Conn) (env []string, err error) {
	confined := Confined(c.server)
	env = append(confined.Env, c.opts.Env...)
	if !c.server.Sandbox.On {
		return env, nil
	}
	l.sandbox, err = sandbox.New(confined, c.log, func(why string) {
		l.stderrTail.Add("dynmcp: " + why)
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return append(env, l.sandbox.Env()...), nil
}
