package schema

import (
	"errors"
	"fmt"
	"slices"
)

// reading is the state of reading one document: what was found so far. It
// goes on after a mistake, so that all are reported together.
type reading struct {
	src      *source
	errs     Errors
	missing  MissingVariablesError
	warnings Errors
	secrets  []string

	// origin says where variables come from, for errors.
	origin string
	// template is what every server starts from: the defaults of the keys,
	// and over them the file's own.
	template Server
	// places maps the name of every server read so far to where it stands.
	places map[string]pos

	// several is set when the config has further files: this one need have no
	// servers. far is set when a nearer one was read too. From the files behind
	// come inherited, the names of their servers, and base, what their servers
	// start from.
	several, far bool
	inherited    map[string]bool
	base         *Server
}

func newReading(name string, data []byte) *reading {
	return &reading{src: &source{name: name, data: data}, places: map[string]pos{}}
}

// warningTexts are the remarks in file order.
func (r *reading) warningTexts() []string {
	r.warnings.sort()
	var texts []string
	for _, w := range r.warnings {
		texts = append(texts, w.Error())
	}
	return texts
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
func (r *reading) secret(value string) {
	if value != "" && !slices.Contains(r.secrets, value) {
		r.secrets = append(r.secrets, value)
	}
}

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
