package box

import (
	"fmt"

	"github.com/dynmcp/dynmcp/internal/guard"
)

// Restrictions returns the limits that the guard applies to the server, nil without a sandbox.
func (b *Sandbox) Restrictions() *guard.Restrictions {
	if b == nil {
		return nil
	}
	restrictions := &guard.Restrictions{Ruleset: b.restrictions.Ruleset}
	if !b.learns {
		restrictions.Filter = func() ([]byte, error) {
			if err := b.built(); err != nil {
				return nil, fmt.Errorf("sandbox: %w", err)
			}
			return b.restrictions.Filter, nil
		}
	}
	if b.listener != nil {
		restrictions.Listener = b.listener.guardEnd
	}
	return restrictions
}

// Command returns a command line unchanged.
func (b *Sandbox) Command(path string, args []string) (string, []string) { return path, args }
