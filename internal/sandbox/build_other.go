//go:build !linux && !darwin

package sandbox

// Missing describes the parts of the policy that this system cannot limit: all of it.
func (p Policy) Missing() []string { return []string{"anything: " + ErrUnsupported.Error()} }

// Build makes the restrictions of a policy.
func Build(p Policy) (*Restrictions, error) {
	if p.BestEffort {
		return &Restrictions{Missing: p.Missing()}, nil
	}
	return nil, ErrUnsupported
}
