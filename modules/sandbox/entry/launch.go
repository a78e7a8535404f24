package entry

import (
	"fmt"
	"log/slog"

	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Launches reports whether the entry has a sandbox. It implements command.Launcher.
func (k Keys) Launches() bool { return k.Sandbox.On }

// Launch makes the sandbox of a program. Refused connections are reported as lines of its stderr. It
// implements command.Launcher.
func (k Keys) Launch(server schema.Server, log *slog.Logger, say func(line string)) (command.Launch, error) {
	s := Confined(server, k.Sandbox)
	s.Trace = k.trace
	started, err := box.New(s, log, func(why string) { say("dynmcp: " + why) })
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return launch{started, s.Env}, nil
}

// A launch is one start in a sandbox.
type launch struct {
	*box.Sandbox
	env []string
}

func (l launch) Env() []string { return append(l.env, l.Sandbox.Env()...) }

// Confined returns the description of a server for its sandbox, with its environment.
func Confined(server schema.Server, access Sandbox) box.Server {
	server = command.AtHome(server)
	inherit := server.InheritEnv
	if access.On && (!access.Env.None || len(inherit.Names) == 0) {
		inherit = access.Env
	}
	s := box.Server{
		Name: server.Name, Dir: server.Cwd, DirSet: server.Cwd != "",
		Env:  command.Environment(server.Env, inherit),
		Read: access.Read, Write: access.Write, BestEffort: access.BestEffort,
	}
	s.Runner, s.Package = packages.Installer(server.Command, server.Args)
	switch network := access.Network; {
	case network.None:
		s.Network = sandbox.NoNetwork
	case len(network.Hosts) > 0:
		s.Network, s.Hosts = sandbox.OnlyByProxy, network.Hosts
	}
	s.Program, _ = command.Find(server.Command, server.Cwd, s.Env) // the start reports a missing program
	return s
}
