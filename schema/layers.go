package schema

import (
	"reflect"
	"slices"
	"strings"
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

// merge makes one config of files that were read without an error, the nearest
// first.
func merge(layers []*reading) (*Config, error) {
	cfg := configOf(mergeDocuments(layers))
	cfg.Path = layers[0].path
	cfg.Origins = map[string]Origin{}
	for _, r := range layers {
		cfg.Sources = append(cfg.Sources, r.path)
		cfg.addServers(r)
		r.warnings.sort()
		for _, w := range r.warnings {
			cfg.Warnings = append(cfg.Warnings, w.Error())
		}
	}
	cfg.secrets = secretsOf(layers)
	if len(layers) > 1 {
		mergeDefaults(cfg, layers)
	}
	if len(cfg.Servers) == 0 && cfg.Tree == nil {
		near := layers[0]
		near.fail(near.root.at, "", "there are no servers, neither here nor in the files behind", "want mcp, mcpServers, servers or tree with servers in it")
		return nil, near.err()
	}
	return cfg, nil
}

// secretsOf are the values to hide: credentials, and what came from variables
// unless a file shows it in plain text elsewhere.
func secretsOf(layers []*reading) []string {
	var secrets, public []string
	for _, r := range layers {
		secrets = append(secrets, r.secrets...)
		public = append(public, r.public...)
	}
	for _, r := range layers {
		for _, value := range r.values {
			shown := func(r *reading) bool {
				return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(text, value) })
			}
			if !slices.ContainsFunc(layers, shown) {
				secrets = append(secrets, value)
			}
		}
	}
	slices.Sort(secrets)
	return slices.DeleteFunc(slices.Compact(secrets), func(s string) bool { return s == "" || slices.Contains(public, s) })
}

// addServers adds those servers of a file that no nearer one has.
func (c *Config) addServers(r *reading) {
	for _, s := range r.doc.all(r) {
		if o, taken := c.Origins[s.Name]; taken {
			o.Hides = append(o.Hides, r.path)
			c.Origins[s.Name] = o
			continue
		}
		c.Origins[s.Name] = Origin{File: r.path, Line: r.places[s.Name].line}
		c.Servers = append(c.Servers, s)
	}
}

func mergeDocuments(layers []*reading) *Document {
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

// mergeDefaults fills in the defaults that depend on more than one key, which
// the files on their own could not know.
func mergeDefaults(cfg *Config, layers []*reading) {
	has := func(key string) bool {
		return slices.ContainsFunc(layers, func(r *reading) bool { return r.root.has(key) })
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
