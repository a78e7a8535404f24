package openapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A given file is the value of an argument that names a file, once it was read.
type given struct {
	name string
	text []byte
}

// withFiles returns the arguments of a call with the files that they name: bytes may be given as the URI of
// a file in the roots of the host. A path is not one, since it may be base64 as well.
func (s *server) withFiles(ctx context.Context, op *operation, arguments object) (object, error) {
	b := op.body
	if b == nil {
		return arguments, nil
	}
	r := &fileReader{ctx: ctx, server: s, left: s.web.MaxBytes()}
	switch v := arguments[b.arg].(type) {
	case string:
		if b.kind == kindBinary {
			arguments[b.arg] = r.value(v)
		}
	case object:
		for name := range b.binary {
			if !b.takesFile(name) || v[name] == nil {
				continue
			}
			if list, ok := v[name].([]any); ok {
				for i, item := range list {
					list[i] = r.value(item)
				}
			} else {
				v[name] = r.value(v[name])
			}
		}
	}
	return arguments, r.err
}

// takesFile reports whether a part of a form is bytes, which may be those of a file.
func (b *body) takesFile(part string) bool { return b.kind == kindMultipart && b.binary[part] }

// A fileReader reads the files of one call.
type fileReader struct {
	ctx    context.Context
	server *server
	roots  []string // directories; nil before the host was asked
	left   int      // bytes that may be read yet
	err    error    // the first
}

// value returns the file that a value names, any other value as it is.
func (r *fileReader) value(v any) any {
	uri, _ := v.(string)
	if len(uri) < len("file:") || !strings.EqualFold(uri[:len("file:")], "file:") || r.err != nil {
		return v
	}
	f, err := r.read(uri)
	if err != nil {
		r.err = fmt.Errorf("the file %q: %w", uri, err)
		return v
	}
	return f
}

func (r *fileReader) read(uri string) (f given, err error) {
	path, err := pathOf(uri)
	if err != nil {
		return f, err
	}
	if r.roots == nil {
		if err := r.ask(); err != nil {
			return f, err
		}
	}
	for _, root := range r.roots {
		relative, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(relative) {
			continue
		}
		f.text, err = regular.ReadWithin(r.ctx, root, relative, int64(r.left))
		r.left -= len(f.text)
		f.name = filepath.Base(path)
		return f, err
	}
	return f, fmt.Errorf("it is not in the roots of the host, %s", strings.Join(r.roots, ", "))
}

// ask asks the host for its roots.
func (r *fileReader) ask() error {
	result, err := r.server.web.HostRoots(r.ctx)
	if err != nil {
		return err
	}
	for root := range wire.Elements(wire.Get(result, "roots")) {
		uri, _ := wire.Text(wire.Get(root, "uri"))
		if dir, err := pathOf(uri); err == nil {
			r.roots = append(r.roots, dir)
		}
	}
	if r.roots == nil {
		return errors.New("the host has no roots, so no file is in them: send the bytes as base64")
	}
	return nil
}

// pathOf returns the path of a URI (RFC 8089).
func pathOf(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil || !strings.EqualFold(u.Scheme, "file") || u.Host != "" && !strings.EqualFold(u.Host, "localhost") || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("it is not the URI of a file on this machine, such as file:///home/ann/cat.png")
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/") // of /C:/Users
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", errors.New("its path is not absolute")
	}
	return filepath.Clean(path), nil
}
