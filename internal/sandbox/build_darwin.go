package sandbox

import "os"

// Program applies a profile to the command it starts. Apple calls it deprecated, but starts its
// own services with the same mechanism.
const Program = "/usr/bin/sandbox-exec"

// Missing describes the parts of the policy that this system cannot limit.
func (p Policy) Missing() []string {
	if _, err := os.Stat(Program); err != nil {
		return []string{"anything (" + err.Error() + ")"}
	}
	return nil
}

// Begin makes restrictions without a profile.
func Begin(p Policy) (*Restrictions, error) {
	missing := p.Missing()
	if len(missing) > 0 && !p.BestEffort {
		return nil, &MissingError{missing}
	}
	return &Restrictions{Missing: missing}, nil
}

// Build makes the profile of a policy.
func (w *Restrictions) Build(p Policy) error {
	if len(w.Missing) == 0 {
		w.Profile = p.Profile()
	}
	return nil
}
