package sandbox

import (
	"fmt"

	"github.com/dynmcp/dynmcp/internal/guard"
)

// Walls returns the limits that the guard applies to the server, nil without a sandbox.
func (b *Sandbox) Walls() *guard.Walls {
	if b == nil {
		return nil
	}
	walls := &guard.Walls{Ruleset: b.walls.Ruleset}
	if !b.learns {
		walls.Filter = func() ([]byte, error) {
			if err := b.built(); err != nil {
				return nil, fmt.Errorf("sandbox: %w", err)
			}
			return b.walls.Filter, nil
		}
	}
	if b.listener != nil {
		walls.Listener = b.listener.guardEnd
	}
	return walls
}

// Command returns a command line unchanged.
func (b *Sandbox) Command(path string, args []string) (string, []string) { return path, args }
