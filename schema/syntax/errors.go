package syntax

import (
	"fmt"
	"strings"
)

// Error is one problem in a config file.
type Error struct {
	// File is the file as the caller named it.
	File string
	// Line and Column count from 1, columns in characters. Line is 0 if there is
	// no file yet.
	Line, Column int
	// Path is the path in the document, like mcp.git.args[0]; empty for the
	// document as a whole.
	Path string
	// Err is the error, without values that may be secret.
	Err error
	// Hint says how to fix it; it may be empty.
	Hint string
}

// Error returns one line: the position, the path, the error and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Column)
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Err.Error())
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all errors of a config file, in file order.
type Errors []*Error

// Error returns a heading and one line for each error.
func (e Errors) Error() string {
	lines := []string{"Invalid config file:"}
	for _, err := range e {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one, for errors.As.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, err := range e {
		all[i] = err
	}
	return all
}
