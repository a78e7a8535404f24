package schema

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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

// Load reads the config file at path. When the file is wrong, the error holds
// Errors, a *MissingVariablesError or both; otherwise it is about reading a
// file, this one or the .env.
func Load(path string, opts LoadOptions) (*Config, error) {
	return LoadLayers([]string{path}, opts)
}

func readFile(path string) ([]byte, error) {
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

// Parse reads a config from data as Load reads one from a file. The name
// decides between JSON and YAML, and errors show it.
func Parse(name string, data []byte, opts LoadOptions) (*Config, error) {
	r := newReading(name, data)
	_, doc, err := r.read(opts)
	if err != nil {
		return nil, err
	}
	cfg := configOf(doc)
	cfg.Servers = doc.all(r)
	cfg.Warnings = r.warningTexts()
	cfg.secrets = r.secrets
	return cfg, nil
}

// read reads the text of r, up to the types with all their defaults.
func (r *reading) read(opts LoadOptions) (*node, *Document, error) {
	root, failure := r.src.parse()
	if failure != nil {
		return nil, nil, Errors{failure}
	}
	r.duplicates("", root)
	if err := r.resolve(root, opts); err != nil {
		return nil, nil, err
	}
	doc := r.decodeDocument(root)
	return root, doc, r.err()
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
	if r.far && (mode == envDisable || mode == envProcess) {
		opts.EnvFile = "" // it was given for the nearest file
	}
	if opts.EnvFile != "" && (mode == envDisable || mode == envProcess) {
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

// Secrets returns the values that must not be shown anywhere: what came in
// for ${…}, the values of headers, what logs in, and the values of variables
// whose names sound like secrets. A redactor looks for them.
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
	return &Config{
		SingleWrap:  true,
		Env:         doc.Env,
		Servers:     []Server{s},
		Defaults:    doc.Defaults,
		Expose:      doc.Expose,
		Catalog:     doc.Catalog,
		Gateway:     doc.Gateway,
		StartupWait: doc.StartupWait,
	}
}
