//go:build !linux && !darwin

package sandbox

// Missing returns what of the policy this system cannot limit: all of it.
func (p Policy) Missing() []string { return []string{"anything: " + ErrUnsupported.Error()} }

// Build makes the walls of a policy.
func Build(p Policy) (*Walls, error) {
	if p.BestEffort {
		return &Walls{Missing: p.Missing()}, nil
	}
	return nil, ErrUnsupported
}
