package schema

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
)

// Origin is where a server of a config was written.
type Origin struct {
	// File is the absolute path of the file, Line the line of its entry.
	File string
	Line int
	// Hides are the files that have an entry of the same name which this one
	// replaced, the nearest first.
	Hides []string
}

// A layer is one of the files that make up a config.
type layer struct {
	path string // absolute
	r    *reading
	root *node
	doc  *Document
}

// LoadLayers reads several config files into one config, the nearest first:
// what it says wins over what files behind it say. Servers are merged by name,
// whole entries at a time; of other keys each is taken from the nearest file
// that has it, and of catalog, gateway and defaults each of their keys. Errors
// are as Load's, of all the files together.
func LoadLayers(paths []string, opts LoadOptions) (*Config, error) {
	var layers []*layer // the farthest first: nearer ones refer to its servers
	var failures []error
	for i := len(paths) - 1; i >= 0; i-- {
		l, err := readLayer(paths[i], layers, i > 0, len(paths) > 1, opts)
		if err != nil {
			failures = append([]error{err}, failures...)
			continue
		}
		layers = append(layers, l)
	}
	if len(failures) == 1 {
		return nil, failures[0]
	}
	if len(failures) > 1 {
		return nil, errors.Join(failures...)
	}
	slices.Reverse(layers)
	return merge(layers)
}

func readLayer(path string, behind []*layer, far, several bool, opts LoadOptions) (*layer, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the config file: %w", err)
	}
	data, err := readFile(absolute)
	if err != nil {
		return nil, err
	}
	r := newReading(path, data)
	r.several, r.far, r.inherited = several, far, map[string]bool{}
	for _, l := range behind {
		r.base = &l.doc.Defaults
		for name := range l.r.places {
			r.inherited[name] = true
		}
	}
	l := &layer{path: absolute, r: r}
	l.root, l.doc, err = r.read(opts)
	return l, err
}

// merge makes one config of files that were read without an error.
func merge(layers []*layer) (*Config, error) {
	doc := mergeDocuments(layers)
	cfg := configOf(doc)
	cfg.Path = layers[0].path
	cfg.Origins = map[string]Origin{}
	for _, l := range layers {
		cfg.Sources = append(cfg.Sources, l.path)
		cfg.addServers(l)
		cfg.Warnings = append(cfg.Warnings, l.r.warningTexts()...)
		for _, secret := range l.r.secrets {
			if !slices.Contains(cfg.secrets, secret) {
				cfg.secrets = append(cfg.secrets, secret)
			}
		}
	}
	if len(layers) > 1 {
		settle(cfg, layers)
	}
	if len(cfg.Servers) == 0 && cfg.Tree == nil {
		near := layers[0].r
		near.fail(layers[0].root.at, "", "there are no servers, neither here nor in the files behind", "want mcp, mcpServers, servers or tree with servers in it")
		return nil, near.err()
	}
	return cfg, nil
}

// addServers adds those servers of a file that no nearer one has.
func (c *Config) addServers(l *layer) {
	for _, s := range l.doc.all(l.r) {
		if o, taken := c.Origins[s.Name]; taken {
			o.Hides = append(o.Hides, l.path)
			c.Origins[s.Name] = o
			continue
		}
		c.Origins[s.Name] = Origin{File: l.path, Line: l.r.places[s.Name].line}
		c.Servers = append(c.Servers, s)
	}
}

func mergeDocuments(layers []*layer) *Document {
	doc := *layers[len(layers)-1].doc
	for i := len(layers) - 2; i >= 0; i-- {
		overlay(reflect.ValueOf(&doc).Elem(), reflect.ValueOf(layers[i].doc).Elem(), layers[i].root)
	}
	return &doc
}

// overlay sets in dst the fields of src that n, what src was read from, has
// keys for.
func overlay(dst, src reflect.Value, n *node) {
	for _, f := range fieldsOf(src.Type()) {
		value := n.get(f.key)
		to, from := dst.Field(f.index), src.Field(f.index)
		switch {
		case value == nil:
		case from.Kind() == reflect.Struct:
			overlay(to, from, value)
		default:
			to.Set(from)
		}
	}
}

// settle fills in the defaults that depend on more than one key, which the
// files on their own could not know.
func settle(cfg *Config, layers []*layer) {
	has := func(key string) bool {
		return slices.ContainsFunc(layers, func(l *layer) bool { return l.root.has(key) })
	}
	if !has("expose") {
		cfg.Expose = []string{ExposeDiscover}
		if len(cfg.Servers) == 0 {
			cfg.Expose = []string{ExposeTree}
		}
	}
	if !has("startup_wait") {
		cfg.StartupWait = Single("", nil).StartupWait
		if slices.Contains(cfg.Expose, ExposeDirect) {
			cfg.StartupWait = directWait
		}
	}
}
