package command

import (
	"log/slog"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/schema"
)

// A Launcher changes how the program of a server starts. It is the value of a module's keys in the entry of
// that server: so nobody who starts the server can forget it.
type Launcher interface {
	// Launches reports whether there is something to change. Of the keys of an entry at most one may say so.
	Launches() bool
	// Launch prepares a start. say is called with lines for the stderr of the program; it must not block.
	Launch(server schema.Server, log *slog.Logger, say func(line string)) (Launch, error)
}

// A Launch is one start of a program. Close is called when the program has ended, or could not be started.
type Launch interface {
	// Env returns all variables of the program.
	Env() []string
	// Command returns what to run for a program and its arguments, the first of which is its name.
	Command(path string, args []string) (string, []string)
	// Restrictions are those that the guard applies; nil is none.
	Restrictions() *guard.Restrictions
	// Status describes what limits the program, nil if nothing does.
	Status() *event.Sandbox
	Close() error
}

// LauncherOf returns the launcher among the keys of a server, nil if the program is started as it is.
func LauncherOf(server schema.Server) Launcher {
	for _, keys := range server.Keys {
		if l, ok := keys.(Launcher); ok && l.Launches() {
			return l
		}
	}
	return nil
}

// Prepare prepares a start of the program of a server, by its launcher if it has one.
func Prepare(server schema.Server, log *slog.Logger, say func(line string)) (Launch, error) {
	if l := LauncherOf(server); l != nil {
		return l.Launch(server, log, say)
	}
	return plain(Environment(server.Env, server.InheritEnv)), nil
}

// plain is the start of a program as it is, with its variables.
type plain []string

func (p plain) Env() []string                                       { return p }
func (plain) Command(path string, args []string) (string, []string) { return path, args }
func (plain) Restrictions() *guard.Restrictions                     { return nil }
func (plain) Status() *event.Sandbox                                { return nil }
func (plain) Close() error                                          { return nil }
