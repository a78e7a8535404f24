package command

import (
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/schema"
)

// Confined returns the description of a server for its sandbox, with its environment.
func Confined(server schema.Server) sandbox.Server {
	server = AtHome(server)
	inherit := server.InheritEnv
	if box := server.Sandbox; box.On && (!box.Env.None || len(inherit.Names) == 0) {
		inherit = box.Env
	}
	s := sandbox.Server{
		Name: server.Name, Dir: server.Cwd, DirSet: server.Cwd != "",
		Env:  Environment(server.Env, inherit),
		Read: server.Sandbox.Read, Write: server.Sandbox.Write, BestEffort: server.Sandbox.BestEffort,
	}
	s.Runner, s.Package = packages.Installer(server.Command, server.Args)
	switch network := server.Sandbox.Network; {
	case network.None:
		s.Network = sandbox.NoNetwork
	case len(network.Hosts) > 0:
		s.Network, s.Hosts = sandbox.OnlyByProxy, network.Hosts
	}
	s.Program, _ = Find(server.Command, server.Cwd, s.Env) // the start reports a missing program
	return s
}
