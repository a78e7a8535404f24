package schema

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// LoadOptions configure the loading of a config. The zero value is the behaviour without
// flags.
type LoadOptions struct {
	// EnvFile is a file to read instead of any .env; it must exist.
	EnvFile string
	// Dir is the directory of the second .env, besides the one next to each config file; empty
	// is the working directory.
	Dir string
	// Environ is the process environment as NAME=value; nil is os.Environ().
	Environ []string
	// Strict makes it an error if a variable of a server is not set; otherwise that server
	// is disabled.
	Strict bool
	// Lenient switches a server off whose entry has errors, and leaves out an entry without a usable
	// name; otherwise they are errors of the file.
	Lenient bool
	// Expose names the surfaces that are on and overrides the files; nil uses those of the
	// files.
	Expose []string
	// Select returns the part of a config that is used; nil uses all of it. References to
	// secrets outside of that part are not resolved.
	Select func(*Config) (*Config, error)
	// Only limits the servers whose references to secrets are resolved; nil is all.
	Only []string
	// Sections are the keys of the modules that this program has.
	Sections []Section
	// Schemes are those of references to secrets that the modules of this program resolve.
	Schemes []string
	// Secret returns the value of a reference to a secret, like keyring:NAME. If there is
	// none, it returns the problem in a few words without secrets, and a hint. It is called
	// concurrently. If it is nil, such references are left unchanged.
	Secret func(reference string) (value, problem, hint string)
}

// Load merges the files: a nearer one overrides those behind it. Servers are
// merged by name, as whole entries. Any other key is taken from the nearest file
// that has it; for catalog, gateway and defaults that holds for each of their keys.
//
// The error for files with invalid content wraps syntax.Errors, a *MissingVariablesError or
// both, for all files. A variable that is missing for only one server is not an error: see
// Server.Off. The error of Select is returned unchanged.
func (f *Files) Load() (*Config, error) {
	needless, err := f.needless()
	if err != nil {
		return nil, err
	}
	cfg, _, err := f.load(needless)
	if err != nil {
		return nil, err
	}
	if f.opts.Select == nil {
		return cfg, nil
	}
	return f.opts.Select(cfg)
}

// load merges the files, without resolving references of unselected parts.
func (f *Files) load(needless []map[string]bool) (*Config, []*reading, error) {
	var layers []*reading // the farthest first: nearer ones refer to its servers
	var failures []error
	for i, c := range slices.Backward(f.config) {
		r := &reading{path: c.path, files: f, known: f.opts.Sections, beside: f.beside[i], nearest: i == 0, layered: len(f.config) > 1, behind: slices.Clone(layers)}
		if needless != nil {
			r.needless = needless[i]
		}
		err := c.configError()
		if err == nil {
			err = r.read(c.name, c.data)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		layers = append(layers, r)
	}
	slices.Reverse(failures)
	if err := errors.Join(failures...); err != nil {
		return nil, nil, err
	}
	slices.Reverse(layers)
	cfg, err := merge(layers)
	return cfg, layers, err
}

// LoadText loads a config that is not in a file yet. name is the file that it would be in: it
// determines the format, JSON or YAML, and the location of its .env.
func LoadText(name string, data []byte, opts LoadOptions) (*Config, error) {
	return TextFiles(context.Background(), name, data, opts).Load()
}

// fileError is a message for the user that wraps an error for the program.
type fileError struct {
	text string
	err  error
}

func (e *fileError) Error() string { return e.text }
func (e *fileError) Unwrap() error { return e.err }

// read reads a document. The name is for errors, and decides between JSON and YAML.
func (r *reading) read(name string, data []byte) error {
	r.src, r.positions = &syntax.Source{Name: name, Data: data}, map[string]syntax.Pos{}
	r.off, r.sources, r.entries = map[string]*Off{}, map[*Source]place{}, map[string]string{}
	root, err := r.src.Parse()
	if err != nil {
		return err
	}
	r.root = root
	r.duplicates("", root)
	convertHost(r, name, root, withSections(documentFields, r.known, false))
	if err := r.resolve(root); err != nil {
		return err
	}
	r.doc = r.decodeDocument(root)
	setBroken(r)
	return r.err()
}

// resolve replaces the references to variables in the document.
func (r *reading) resolve(root *syntax.Node) error {
	mode := envMode(root)
	readsFile := mode != envDisable && mode != envProcess
	if r.files.opts.EnvFile != "" && !readsFile && r.nearest {
		r.fail(root.Get("env").At, "env", fmt.Sprintf("%q is incompatible with an env file", mode), "leave out one of them")
		return nil
	}
	if mode == envDisable {
		return nil
	}
	vars, err := r.variables(mode)
	if err != nil {
		return err
	}
	r.variableSource = r.sourceOfVariables(mode)
	r.interpolate(root, vars)
	return nil
}

// Secrets returns the values that a redactor must hide: headers and credentials, values of
// env that look like secrets, and values of variables that the config does not contain in
// plain text as well.
func (c *Config) Secrets() []string { return c.secrets }

// Single returns the config of a run without a file: one eager stdio server with all defaults,
// named after the program, without the file extension of Windows.
func Single(command string, args []string) *Config {
	var doc Document
	setDefaults(reflect.ValueOf(&doc).Elem())
	s := doc.Defaults
	name := ServerName(filepath.Base(command))
	s.Name = strings.TrimSuffix(strings.TrimSuffix(name, "-exe"), "-cmd")
	if s.Name == "" {
		s.Name = "server"
	}
	s.Transport, s.Command, s.Args = Stdio, command, args
	cfg := newConfig(&doc)
	cfg.SingleWrap, cfg.Servers = true, []Server{s}
	return cfg
}
