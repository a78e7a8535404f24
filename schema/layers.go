package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/secrets"
	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Origin is the position of a server's entry.
type Origin struct {
	// File is the absolute path of the file, Line the line of its entry.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Hides are the files whose entry of the same name this one replaces, the
	// nearest first.
	Hides []string `json:"hides,omitempty"`
}

// Origin returns the position of a server's entry: the file alone if the line is not known.
func (c *Config) Origin(server string) Origin {
	if o, ok := c.Origins[server]; ok {
		return o
	}
	return Origin{File: c.Path}
}

// merge merges files that were read without an error, the nearest first.
func merge(layers []*reading) (*Config, error) {
	last := len(layers) - 1
	doc := *layers[last].doc
	for _, r := range slices.Backward(layers[:last]) {
		overlay(reflect.ValueOf(&doc).Elem(), reflect.ValueOf(r.doc).Elem(), r.root)
	}
	doc.Defaults.Keys = layers[0].doc.Defaults.Keys // with those of the files behind it
	cfg := newConfig(&doc)
	cfg.Path = layers[0].path
	cfg.Origins = map[string]Origin{}
	for _, r := range layers {
		cfg.addFile(r)
	}
	cfg.Profile = doc.Profile
	cfg.setSections(layers)
	cfg.mergeProfiles(layers)
	cfg.secrets = secretsOf(layers)
	cfg.setExpose(layers)
	cfg.setScripts(layers)
	cfg.waitGiven = anyHas(layers, "startup_wait")
	if i := slices.IndexFunc(layers, func(r *reading) bool { return r.root.Has("tree") }); i >= 0 {
		cfg.mountSources(layers[i])
	}
	near := layers[0]
	if !slices.ContainsFunc(serverKeys, func(key string) bool { return anyHas(layers, key) }) {
		near.fail(near.root.At, "", "there are no servers, neither here nor in the files behind", "want mcp, mcpServers, servers or tree with servers in it")
		return nil, near.err()
	}
	if cfg.Empty() {
		cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("%s: %s", near.path, NoServers))
	}
	return cfg, nil
}

// NoServers says how to add the first server to a config.
const NoServers = "no servers yet: dynmcp add NAME -- COMMAND adds one"

// Empty reports whether the config has no servers at all, as one has that dynmcp init made.
func (c *Config) Empty() bool { return len(c.Servers) == 0 && c.Tree == nil }

// secretsOf returns the values to hide: credentials, and the values of variables that no
// file also has in plain text.
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
				texts = append(texts, secrets.Hide(t.text, secrets.Find(t.within, t.key, t.text), mask.Text))
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

// addFile adds the servers of a file that no nearer file has, and its warnings.
func (c *Config) addFile(r *reading) {
	c.Sources = append(c.Sources, r.path)
	sortErrors(r.warnings)
	for _, w := range r.warnings {
		c.Warnings = append(c.Warnings, w.Error())
	}
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

// overlay copies those fields from src to dst for which n, the node of src, has keys.
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

// setExpose sets the surfaces that the options name. If there are several files and none has
// the key, the surfaces follow from the servers.
func (c *Config) setExpose(layers []*reading) {
	expose := layers[0].files.opts.Expose
	switch {
	case expose != nil:
		c.Expose, c.exposeFixed = expose, true
	case len(layers) == 1 || anyHas(layers, "expose"):
	case len(c.Servers) == 0 && c.Tree != nil: // its servers are added later
		c.Expose = []string{ExposeTree}
	default:
		c.Expose = []string{ExposeDiscover}
	}
}

// anyHas reports whether one of the files has a key.
func anyHas(layers []*reading, key string) bool {
	return slices.ContainsFunc(layers, func(r *reading) bool { return r.root.Has(key) })
}
