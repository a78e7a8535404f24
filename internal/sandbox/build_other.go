//go:build !linux

package sandbox

// Build makes the walls of a policy.
func Build(p Policy) (*Walls, error) {
	if p.BestEffort {
		return &Walls{Missing: []string{"anything: " + ErrUnsupported.Error()}}, nil
	}
	return nil, ErrUnsupported
}
