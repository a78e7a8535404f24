package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Files are the contents of the files of a config: the config files, the nearest first, the
// .env beside each, and that of the working directory.
type Files struct {
	opts   LoadOptions
	config []content
	beside []content // one per config file; without a name if another file was requested
	env    content
}

// ReadFiles reads each file once. Load reports those that could not be read.
// When ctx ends, so does reading.
func ReadFiles(ctx context.Context, paths []string, opts LoadOptions) *Files {
	f := &Files{opts: opts, env: content{name: opts.EnvFile}}
	if opts.EnvFile == "" {
		f.env.name = filepath.Join(opts.Dir, ".env")
	}
	for _, path := range paths {
		f.config = append(f.config, content{name: path})
		beside := content{}
		if opts.EnvFile == "" {
			beside.name = EnvFileBeside(path)
		}
		f.beside = append(f.beside, beside)
	}
	f, _ = f.Reread(ctx)
	return f
}

// TextFiles is ReadFiles for a document that is not in a file, under the name of one in the
// working directory, or elsewhere. Reread reads its .env files again.
func TextFiles(ctx context.Context, name string, data []byte, opts LoadOptions) *Files {
	f := ReadFiles(ctx, nil, opts)
	path, err := filepath.Abs(name)
	f.config = []content{{name: name, path: path, data: data, err: err, given: true}}
	beside := content{}
	if opts.EnvFile == "" {
		beside = content{name: EnvFileBeside(name)}.reread(ctx)
	}
	f.beside = []content{beside}
	return f
}

// Reread reads the same files again, and reports whether any has changed. Pipes
// cannot be read twice, and keep their content.
func (f *Files) Reread(ctx context.Context) (next *Files, changed bool) {
	next = &Files{opts: f.opts, env: f.env.reread(ctx)}
	for i, c := range f.config {
		next.config = append(next.config, c.reread(ctx))
		next.beside = append(next.beside, f.beside[i].reread(ctx))
	}
	same := func(a, b content) bool {
		return bytes.Equal(a.data, b.data) && fmt.Sprint(a.err) == fmt.Sprint(b.err)
	}
	return next, !same(f.env, next.env) || !slices.EqualFunc(f.config, next.config, same) || !slices.EqualFunc(f.beside, next.beside, same)
}

// Text returns the text of the nearest config file.
func (f *Files) Text() []byte { return f.config[0].data }

// EnvFileBeside returns the .env file that belongs to a config file.
func EnvFileBeside(config string) string { return filepath.Join(filepath.Dir(config), ".env") }

// content is the content of a file, or the reason why it could not be read.
type content struct {
	name string // as it was given
	path string // absolute
	data []byte
	err  error

	given bool // it is not read again: a pipe, or a text without a file
}

func (c content) reread(ctx context.Context) content {
	if c.given || c.name == "" {
		return c
	}
	if c.path == "" { // the working directory may change later
		if c.path, c.err = filepath.Abs(c.name); c.err != nil {
			return c
		}
	}
	c.data, c.given, c.err = regular.ReadOrPipe(ctx, c.path, syntax.MaxSize)
	return c
}

// configError is the error for a config file that could not be read.
func (c content) configError() error {
	switch {
	case c.err == nil:
		return nil
	case errors.Is(c.err, fs.ErrNotExist):
		return &fileError{fmt.Sprintf("Config file not found: %s; check the path, or make the file with dynmcp init --path", c.path), c.err}
	case errors.Is(c.err, regular.ErrDirectory):
		return fmt.Errorf("the config file %w; name the file in it", c.err)
	}
	return fmt.Errorf("read the config file: %w", c.err)
}
