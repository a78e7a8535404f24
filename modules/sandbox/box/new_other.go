//go:build !linux && !darwin

package box

import (
	"log/slog"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// A Sandbox limits nothing here.
type Sandbox struct{}

// New fails, unless the server may run without a sandbox.
func New(s Server, log *slog.Logger, _ func(why string)) (*Sandbox, error) {
	restrictions, err := sandbox.Build(s.Policy())
	if err != nil {
		return nil, err
	}
	for _, part := range restrictions.Missing {
		log.Warn("sandbox incomplete: this system cannot restrict " + part)
	}
	return &Sandbox{}, nil
}

// Restrictions returns nil: this system has none.
func (b *Sandbox) Restrictions() *guard.Restrictions { return nil }

// Command returns a command line as it is.
func (b *Sandbox) Command(path string, args []string) (string, []string) { return path, args }

// Env returns no variables.
func (b *Sandbox) Env() []string { return nil }

// Status returns nil.
func (b *Sandbox) Status() *event.Sandbox { return nil }

// Close does nothing.
func (b *Sandbox) Close() error { return nil }
