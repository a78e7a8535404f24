//go:build linux || darwin

package sandbox

import "errors"

// Build makes the restrictions of a policy. The error is a *[MissingError] if the system lacks a
// part that is not optional.
func Build(p Policy) (*Restrictions, error) {
	w, err := Begin(p)
	if err != nil {
		return nil, err
	}
	if err := w.Build(p); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}
