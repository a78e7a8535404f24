package box

import (
	"errors"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// Restrictions returns nil: the guard applies none.
func (b *Sandbox) Restrictions() *guard.Restrictions { return nil }

// Command returns the command line that runs another one in the sandbox.
func (b *Sandbox) Command(path string, args []string) (string, []string) {
	if b == nil || b.restrictions.Profile == "" {
		return path, args
	}
	return sandbox.Program, append([]string{sandbox.Program, "-p", b.restrictions.Profile, path}, args[1:]...)
}

// A listener exists only on Linux.
type listener struct{}

func (b *Sandbox) listen(s Server) error {
	if s.Trace != nil {
		return errors.New("a trace needs Linux")
	}
	return nil
}

func (l *listener) close() {}
