package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A report collects the problems of one document, so that all errors are reported together.
type report struct {
	src      *syntax.Source
	errs     syntax.Errors
	missing  MissingVariablesError
	warnings syntax.Errors

	secrets []string // values of headers, tokens and other credentials

	// variableSource describes where variables are looked up, for errors.
	variableSource string
}

// fail records an error.
func (r *report) fail(p syntax.Pos, path, what, hint string) {
	r.errs = append(r.errs, r.src.ErrorAt(p, path, what, hint))
}

// warn records a warning about something valid that may not be intended.
func (r *report) warn(p syntax.Pos, path, what, hint string) {
	r.warnings = append(r.warnings, r.src.ErrorAt(p, path, what, hint))
}

func (r *report) missingVariable(p syntax.Pos, path, name string) {
	if !slices.Contains(r.missing.Names, name) {
		r.missing.Names = append(r.missing.Names, name)
	}
	what := fmt.Sprintf("%s is not set", name)
	hint := fmt.Sprintf("set it in %s, or write ${%s:-default}", r.variableSource, name)
	r.missing.Uses = append(r.missing.Uses, r.src.ErrorAt(p, path, what, hint))
}

// secret records a value that must never be shown.
func (r *report) secret(value string) {
	if value != "" {
		r.secrets = append(r.secrets, value)
	}
}

// err returns the recorded errors, or nil.
func (r *report) err() error {
	sortErrors(r.errs)
	slices.Sort(r.missing.Names)
	sortErrors(r.missing.Uses)
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

// sortErrors puts errors in file order.
func sortErrors(all []*syntax.Error) {
	slices.SortStableFunc(all, func(a, b *syntax.Error) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
}

// MissingVariablesError lists the undefined variables that a config file refers
// to.
type MissingVariablesError struct {
	// Names are the variables, sorted, each once.
	Names []string
	// Uses are the references to them, in file order.
	Uses []*syntax.Error
}

// Error names all variables and then, one per line, where each is used.
func (e *MissingVariablesError) Error() string {
	noun := "variable"
	if len(e.Names) > 1 {
		noun = "variables"
	}
	lines := []string{fmt.Sprintf("missing environment %s: %s", noun, strings.Join(e.Names, ", "))}
	for _, use := range e.Uses {
		lines = append(lines, use.Error())
	}
	return strings.Join(lines, "\n")
}
