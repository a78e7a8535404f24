package schema

import (
	"reflect"
	"slices"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// reading is the state of reading one document, whose keys are decoded into the types of
// types.go. Problems go to the report, and reading continues.
type reading struct {
	path  string // absolute
	files *Files // of the config
	// beside is the .env next to the document.
	beside content
	root   *syntax.Node
	doc    *Document
	// sections are the values of the keys of modules in the document, in the order of known.
	sections []reflect.Value
	known    []Section
	ofServer []field // see entryKeys
	report

	off    map[string]*Off // by the paths of servers
	values []string        // of variables that were inserted for ${…}
	texts  []writtenText
	public []string // values of publicVariables

	// template is the initial value of every server: the defaults of the keys, then those of
	// the files behind, then those of this file.
	template Server
	// positions maps the names of the servers read so far to their positions.
	positions map[string]syntax.Pos
	// entries maps the paths of the servers read so far to their names.
	entries map[string]string
	// sources has the places of the sources of the tree.
	sources map[*Source]place

	// needless are the paths of unselected servers and sources of the tree, whose
	// references to secrets are not resolved.
	needless map[string]bool

	// nearest is set for the file that overrides all others. layered is set if there are
	// others: then a single file may lack servers. behind are the files that this one
	// overrides, the farthest first.
	nearest, layered bool
	behind           []*reading
}

// place is where a part of the document is. In YAML an object begins where its first key does,
// so only the path tells one from the other.
type place struct {
	path string
	at   syntax.Pos
}

// writtenText is a key or a value as written, with the within and key of secrets.Find.
type writtenText struct{ within, key, text string }

// inherits reports whether a file behind this one has a server of the name.
func (r *reading) inherits(name string) bool {
	return slices.ContainsFunc(r.behind, func(b *reading) bool {
		_, ok := b.positions[name]
		return ok
	})
}
