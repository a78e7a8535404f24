package schema

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// LoadOptions say where variables come from. The zero value is what a user
// gets who gives no flags.
type LoadOptions struct {
	// EnvFile is a file to read instead of .env; it must exist.
	EnvFile string
	// Dir is where .env is looked for; empty is the working directory.
	Dir string
	// Environ is the process environment as NAME=value; nil is os.Environ().
	Environ []string
}

// Load reads config files into one config, the nearest first: what it says wins
// over what the files behind it say. Servers are merged by name, whole entries
// at a time; of other keys each is taken from the nearest file that has it, and
// of catalog, gateway and defaults each of their keys.
//
// When files are wrong, the error holds Errors, a *MissingVariablesError or
// both, of all of them; otherwise it is about reading one of them or the .env.
func Load(paths []string, opts LoadOptions) (*Config, error) {
	var layers []*reading // the farthest first: nearer ones refer to its servers
	var failures []error
	for i, path := range slices.Backward(paths) {
		r := &reading{nearest: i == 0, layered: len(paths) > 1, behind: slices.Clone(layers)}
		if err := r.readFile(path, opts); err != nil {
			failures = append(failures, err)
			continue
		}
		layers = append(layers, r)
	}
	slices.Reverse(failures)
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	slices.Reverse(layers)
	return merge(layers)
}

func (r *reading) readFile(path string, opts LoadOptions) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find the config file: %w", err)
	}
	r.path = absolute
	data, err := readConfig(absolute)
	if err != nil {
		return err
	}
	return r.read(path, data, opts)
}

func readConfig(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fileError{fmt.Sprintf("Config file not found: %s", path), err}
	}
	if err != nil {
		return nil, fmt.Errorf("read the config file: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("the config file %s is a directory; name the file in it", path)
	}
	data, err := readBounded(file)
	if err != nil {
		return nil, fmt.Errorf("read the config file: %w", err)
	}
	return data, nil
}

// readBounded reads one byte more than is allowed, which is enough to see
// that a file is too large even if it is a device that never ends.
func readBounded(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, maxSource+1))
}

// fileError is a sentence for the user over an error for the program.
type fileError struct {
	text string
	err  error
}

func (e *fileError) Error() string { return e.text }
func (e *fileError) Unwrap() error { return e.err }

// read reads a document. Its name decides between JSON and YAML, and errors
// show it.
func (r *reading) read(name string, data []byte, opts LoadOptions) error {
	r.src, r.places = &source{name: name, data: data}, map[string]pos{}
	root, failure := r.src.parse()
	if failure != nil {
		return Errors{failure}
	}
	r.root = root
	r.duplicates("", root)
	if err := r.resolve(root, opts); err != nil {
		return err
	}
	r.doc = r.decodeDocument(root)
	return r.err()
}

// parse reads the text into a tree of nodes, in whatever language it is.
func (s *source) parse() (*node, *Error) {
	if what, hint := s.check(); what != "" {
		return nil, &Error{File: s.name, Line: 1, Column: 1, Err: errors.New(what), Hint: hint}
	}
	if s.isYAML() {
		return parseYAML(s)
	}
	return parseJSON(s)
}

// resolve replaces the references to variables in the document, from where
// its env key says.
func (r *reading) resolve(root *node, opts LoadOptions) error {
	mode := envMode(root)
	readsFile := mode != envDisable && mode != envProcess
	if opts.EnvFile != "" && !readsFile && r.nearest {
		r.fail(root.get("env").at, "env", fmt.Sprintf("%q is incompatible with an env file", mode), "leave out one of them")
		return nil
	}
	if mode == envDisable {
		return nil
	}
	vars, err := variables(mode, opts)
	if err != nil {
		return err
	}
	r.origin = origin(mode, opts)
	r.interpolate(root, vars)
	return nil
}

// Secrets returns the values that must not be shown anywhere: the values of
// variables that came in for ${…}, of headers, of credentials, and of env keys
// whose names sound like secrets. A redactor looks for them. The value of a
// variable is not a secret if the config has it in plain text elsewhere.
func (c *Config) Secrets() []string { return c.secrets }

// Single is the config of a run without a file: one stdio server, started at
// once, with every default. The program's own name becomes the server's.
func Single(command string, args []string) *Config {
	var doc Document
	preset(reflect.ValueOf(&doc).Elem())
	s := doc.Defaults
	s.Name = slug(filepath.Base(command))
	if s.Name == "" {
		s.Name = "server"
	}
	s.Transport, s.Command, s.Args = Stdio, command, args
	cfg := configOf(&doc)
	cfg.SingleWrap, cfg.Servers = true, []Server{s}
	return cfg
}
