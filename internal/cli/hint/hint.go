// Package hint adds hints to errors: what the user can do about them.
package hint

import "fmt"

// An Error is an error with a hint, which is shown below it.
type Error struct {
	error
	Hint string
}

// With returns err with a hint.
func With(err error, format string, args ...any) error {
	return &Error{err, fmt.Sprintf(format, args...)}
}

// Unwrap returns the error without the hint.
func (e *Error) Unwrap() error { return e.error }
