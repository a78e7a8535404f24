package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/secrets"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Origin is the position of a server's entry.
type Origin struct {
	// File is the absolute path of the file, Line the line of its entry.
	File string
	Line int
	// Hides are the files whose entry of the same name this one replaces, the
	// nearest first.
	Hides []string
}

// merge merges files that were read without an error, the nearest first.
func merge(layers []*reading) (*Config, error) {
	nearer, farthest := layers[:len(layers)-1], layers[len(layers)-1]
	doc := *farthest.doc
	for _, r := range slices.Backward(nearer) {
		overlay(reflect.ValueOf(&doc).Elem(), reflect.ValueOf(r.doc).Elem(), r.root)
	}
	cfg := newConfig(&doc)
	cfg.Path = layers[0].path
	cfg.Origins = map[string]Origin{}
	for _, r := range layers {
		cfg.Sources = append(cfg.Sources, r.path)
		cfg.addServers(r)
		sortErrors(r.warnings)
		for _, w := range r.warnings {
			cfg.Warnings = append(cfg.Warnings, w.Error())
		}
	}
	cfg.secrets = secretsOf(layers)
	if len(layers) > 1 && !anyHas(layers, "expose") {
		cfg.Expose = []string{ExposeDiscover}
		if len(cfg.Servers) == 0 { // those of the tree are not among them yet
			cfg.Expose = []string{ExposeTree}
		}
	}
	if expose := layers[0].files.opts.Expose; expose != nil {
		cfg.Expose = expose
	}
	cfg.setStartupWait(layers)
	if i := slices.IndexFunc(layers, func(r *reading) bool { return r.root.Has("tree") }); i >= 0 {
		cfg.mountSources(layers[i])
	}
	if len(cfg.Servers) == 0 && cfg.Tree == nil {
		near := layers[0]
		near.fail(near.root.At, "", "there are no servers, neither here nor in the files behind", "want mcp, mcpServers, servers or tree with servers in it")
		return nil, near.err()
	}
	return cfg, nil
}

// secretsOf returns the values to hide: credentials, and the values of variables
// unless a file also has them in plain text.
func secretsOf(layers []*reading) []string {
	var hidden, values, texts, public []string
	for _, r := range layers {
		hidden = append(hidden, r.secrets...)
		values = append(values, r.values...)
		public = append(public, r.public...)
	}
	if len(values) > 0 {
		for _, r := range layers {
			for _, t := range r.texts {
				texts = append(texts, secrets.Hide(t.text, secrets.Find(t.within, t.key, t.text), masked))
			}
		}
	}
	slices.Sort(values)
	for _, value := range slices.Compact(values) {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, value) }) {
			hidden = append(hidden, value)
		}
	}
	slices.Sort(hidden)
	return slices.DeleteFunc(slices.Compact(hidden), func(s string) bool { return slices.Contains(public, s) })
}

// addServers adds the servers of a file that no nearer file has.
func (c *Config) addServers(r *reading) {
	for _, s := range r.doc.serversInOrder(r) {
		if o, taken := c.Origins[s.Name]; taken {
			o.Hides = append(o.Hides, r.path)
			c.Origins[s.Name] = o
			continue
		}
		c.Origins[s.Name] = Origin{File: r.path, Line: r.positions[s.Name].Line}
		c.Servers = append(c.Servers, s)
	}
}

// overlay copies the fields from src to dst that n, the node of src, has keys for.
func overlay(dst, src reflect.Value, n *syntax.Node) {
	for _, f := range fieldsOf(src.Type()) {
		value := n.Get(f.key)
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

// setStartupWait sets how long lists wait where no file says so.
func (c *Config) setStartupWait(layers []*reading) {
	written, direct := anyHas(layers, "startup_wait"), slices.Contains(c.Expose, ExposeDirect)
	c.waitGiven = written || direct
	if direct && !written {
		c.StartupWait = DirectWait
	}
}

// anyHas reports whether one of the files has a key.
func anyHas(layers []*reading, key string) bool {
	return slices.ContainsFunc(layers, func(r *reading) bool { return r.root.Has(key) })
}
