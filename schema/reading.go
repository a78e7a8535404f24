package schema

import (
	"errors"
	"fmt"
	"slices"
)

// reading is the state of reading one document: what was found so far. It
// goes on after a mistake, so that all are reported together.
type reading struct {
	path string // absolute, where the document is a file
	src  *source
	root *node
	doc  *Document

	errs     Errors
	missing  MissingVariablesError
	warnings Errors

	secrets []string // values of headers, tokens and other credentials
	values  []string // of variables that came in for ${…}
	texts   []string // keys and values as they are written, but for those of credentials
	public  []string // values of publicVariables

	// origin says where variables come from, for errors.
	origin string
	// template is what every server starts from: the defaults of the keys,
	// over them those of the files behind, and over them the file's own.
	template Server
	// places maps the name of every server read so far to where it stands.
	places map[string]pos

	// nearest is set for the file that wins over the others. layered is set
	// when there are others: then one need have no servers. behind are those
	// that this one wins over, the farthest first.
	nearest, layered bool
	behind           []*reading
}

// inherits reports whether a file behind this one has a server of the name.
func (r *reading) inherits(name string) bool {
	return slices.ContainsFunc(r.behind, func(b *reading) bool {
		_, ok := b.places[name]
		return ok
	})
}

func (r *reading) problem(p pos, path, what, hint string) *Error {
	p = r.src.clamp(p)
	return &Error{File: r.src.name, Line: p.line, Column: p.col, Path: path, Err: errors.New(what), Hint: hint}
}

// fail records that something at p is wrong.
func (r *reading) fail(p pos, path, what, hint string) {
	r.errs = append(r.errs, r.problem(p, path, what, hint))
}

// warn records a remark about something that is right but perhaps not meant.
func (r *reading) warn(p pos, path, what, hint string) {
	r.warnings = append(r.warnings, r.problem(p, path, what, hint))
}

func (r *reading) missingVariable(p pos, path, name string) {
	if !slices.Contains(r.missing.Names, name) {
		r.missing.Names = append(r.missing.Names, name)
	}
	what := fmt.Sprintf("%s is not set", name)
	hint := fmt.Sprintf("set it in %s, or write ${%s:-default}", r.origin, name)
	r.missing.Uses = append(r.missing.Uses, r.problem(p, path, what, hint))
}

// secret records a value that must never be shown.
func (r *reading) secret(value string) { r.secrets = append(r.secrets, value) }

// err is everything that was found wrong, nil when nothing was.
func (r *reading) err() error {
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
