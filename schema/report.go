package schema

import (
	"errors"
	"fmt"
	"slices"
)

// A report collects what is said of one document, so that all errors are reported
// together.
type report struct {
	src      *source
	errs     Errors
	missing  MissingVariablesError
	warnings Errors

	secrets []string // values of headers, tokens and other credentials

	// variableSource says where variables are looked up, for errors.
	variableSource string
}

func (r *report) problem(p pos, path, what, hint string) *Error {
	p = r.src.clamp(p)
	return &Error{File: r.src.name, Line: p.line, Column: p.col, Path: path, Err: errors.New(what), Hint: hint}
}

// fail records an error.
func (r *report) fail(p pos, path, what, hint string) {
	r.errs = append(r.errs, r.problem(p, path, what, hint))
}

// warn records a warning about something valid that may not be intended.
func (r *report) warn(p pos, path, what, hint string) {
	r.warnings = append(r.warnings, r.problem(p, path, what, hint))
}

func (r *report) missingVariable(p pos, path, name string) {
	if !slices.Contains(r.missing.Names, name) {
		r.missing.Names = append(r.missing.Names, name)
	}
	what := fmt.Sprintf("%s is not set", name)
	hint := fmt.Sprintf("set it in %s, or write ${%s:-default}", r.variableSource, name)
	r.missing.Uses = append(r.missing.Uses, r.problem(p, path, what, hint))
}

// secret records a value that must never be shown.
func (r *report) secret(value string) {
	if value != "" {
		r.secrets = append(r.secrets, value)
	}
}

// err returns the recorded errors, or nil.
func (r *report) err() error {
	r.errs.sort()
	slices.Sort(r.missing.Names)
	Errors(r.missing.Uses).sort()
	switch {
	case len(r.missing.Names) == 0 && len(r.errs) == 0:
		return nil
	case len(r.missing.Names) == 0:
		return r.errs
	case len(r.errs) == 0:
		return &r.missing
	default:
		return errors.Join(r.errs, &r.missing)
	}
}
