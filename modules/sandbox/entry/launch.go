package entry

import (
	"fmt"
	"log/slog"

	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/sandbox"
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
	box, err := sandbox.New(s, log, func(why string) { say("dynmcp: " + why) })
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return launch{box, s.Env}, nil
}

// A launch is one start in a sandbox.
type launch struct {
	*sandbox.Sandbox
	env []string
}

func (l launch) Env() []string { return append(l.env, l.Sandbox.Env()...) }

// Confined returns the description of a server for its sandbox, with its environment.
func Confined(server schema.Server, box Sandbox) sandbox.Server {
	server = command.AtHome(server)
	inherit := server.InheritEnv
	if box.On && (!box.Env.None || len(inherit.Names) == 0) {
		inherit = box.Env
	}
	s := sandbox.Server{
		Name: server.Name, Dir: server.Cwd, DirSet: server.Cwd != "",
		Env:  command.Environment(server.Env, inherit),
		Read: box.Read, Write: box.Write, BestEffort: box.BestEffort,
	}
	s.Runner, s.Package = packages.Installer(server.Command, server.Args)
	switch network := box.Network; {
	case network.None:
		s.Network = sandbox.NoNetwork
	case len(network.Hosts) > 0:
		s.Network, s.Hosts = sandbox.OnlyByProxy, network.Hosts
	}
	s.Program, _ = command.Find(server.Command, server.Cwd, s.Env) // the start reports a missing program
	return s
}
