package schema

import (
	"errors"
	"fmt"
	"slices"
)

// reading is the state of reading one document. It continues after errors, so
// that all are reported together.
type reading struct {
	path  string // absolute
	files *Files // of the config
	// beside is the .env next to the document.
	beside content
	src    *source
	root   *node
	doc    *Document

	errs     Errors
	missing  MissingVariablesError
	off      map[string]*Off // by the paths of servers
	warnings Errors

	secrets []string // values of headers, tokens and other credentials
	values  []string // of variables that were inserted for ${…}
	texts   []writtenText
	public  []string // values of publicVariables

	// variableSource says where variables are looked up, for errors.
	variableSource string
	// template is the initial value of every server: the defaults of the keys,
	// overridden by those of the files behind, and those by the file's own.
	template Server
	// positions maps the names of the servers read so far to their positions.
	positions map[string]pos
	// sources has the positions of the sources of the tree.
	sources map[*Source]pos

	// nearest is set for the file that overrides all others. layered is set when
	// there are others: then a single file need not have servers. behind are the
	// files that this one overrides, the farthest first.
	nearest, layered bool
	behind           []*reading
}

// writtenText is a key or a value as it is written, with the within and key of
// secrets.Find.
type writtenText struct{ within, key, text string }

// inherits reports whether a file behind this one has a server of the name.
func (r *reading) inherits(name string) bool {
	return slices.ContainsFunc(r.behind, func(b *reading) bool {
		_, ok := b.positions[name]
		return ok
	})
}

func (r *reading) problem(p pos, path, what, hint string) *Error {
	p = r.src.clamp(p)
	return &Error{File: r.src.name, Line: p.line, Column: p.col, Path: path, Err: errors.New(what), Hint: hint}
}

// fail records an error.
func (r *reading) fail(p pos, path, what, hint string) {
	r.errs = append(r.errs, r.problem(p, path, what, hint))
}

// warn records a warning about something valid that may not be intended.
func (r *reading) warn(p pos, path, what, hint string) {
	r.warnings = append(r.warnings, r.problem(p, path, what, hint))
}

func (r *reading) missingVariable(p pos, path, name string) {
	if !slices.Contains(r.missing.Names, name) {
		r.missing.Names = append(r.missing.Names, name)
	}
	what := fmt.Sprintf("%s is not set", name)
	hint := fmt.Sprintf("set it in %s, or write ${%s:-default}", r.variableSource, name)
	r.missing.Uses = append(r.missing.Uses, r.problem(p, path, what, hint))
}

// secret records a value that must never be shown.
func (r *reading) secret(value string) {
	if value != "" {
		r.secrets = append(r.secrets, value)
	}
}

// err returns the recorded errors, or nil.
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
