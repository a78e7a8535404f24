package sandbox

import (
	"errors"
	"os"

	"github.com/dynmcp/dynmcp/internal/guard"
)

// program applies a profile to the command it starts. Apple calls it deprecated, but starts its
// own services with the same mechanism.
const program = "/usr/bin/sandbox-exec"

// Missing describes the parts of the policy that this system cannot limit.
func (p Policy) Missing() []string {
	if _, err := os.Stat(program); err != nil {
		return []string{"anything (" + err.Error() + ")"}
	}
	return nil
}

// begin makes restrictions without a profile.
func begin(p Policy) (*Restrictions, error) {
	missing := p.Missing()
	if len(missing) > 0 && !p.BestEffort {
		return nil, &MissingError{missing}
	}
	return &Restrictions{Missing: missing}, nil
}

// build makes the profile of a policy.
func (w *Restrictions) build(p Policy) error {
	if len(w.Missing) == 0 {
		w.Profile = p.Profile()
	}
	return nil
}

// Restrictions returns nil: the guard applies none.
func (b *Sandbox) Restrictions() *guard.Restrictions { return nil }

// Command returns the command line that runs another one in the sandbox.
func (b *Sandbox) Command(path string, args []string) (string, []string) {
	if b == nil || b.restrictions.Profile == "" {
		return path, args
	}
	return program, append([]string{program, "-p", b.restrictions.Profile, path}, args[1:]...)
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
