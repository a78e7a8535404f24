// Package secretref resolves references to secrets in a config: file:PATH, and those of the schemes of
// modules, such as keyring:NAME.
package secretref

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// MaxSize is the largest size of a secret in bytes.
const MaxSize = 64 << 10

// A Scheme finds the values of references that begin with its name and a colon.
type Scheme interface {
	// Scheme returns the name.
	Scheme() string
	// Resolve returns the value of what follows the colon, or an *Error. A value beside an error is
	// what must be hidden all the same. hide has the secrets that are known, and may be nil.
	Resolve(ctx context.Context, rest string, hide *redact.Redactor) (value string, err error)
}

// Names returns the names of schemes.
func Names(schemes []Scheme) (names []string) {
	for _, s := range schemes {
		names = append(names, s.Scheme())
	}
	return names
}

// A Resolver resolves references. Values of schemes are kept until Forget is called; files are read each
// time, and failures are retried. It is safe for concurrent use.
type Resolver struct {
	Hide *redact.Redactor // receives every value

	kept sync.Map // values by reference

	mu      sync.Mutex
	lookups map[string]*lookup // those that run, by reference
}

// An Error explains why a reference has no value.
type Error struct {
	What string // in few words, without secrets
	Hint string // more, and what to do
}

func (e *Error) Error() string { return e.What + "; " + e.Hint }

// A lookup is one search for a value, for all callers that need it at the same time.
type lookup struct {
	waiting int // callers, guarded by the resolver
	cancel  context.CancelFunc

	done  chan struct{} // closed when the fields below are set
	value string
	err   error
}

// Resolve returns the value of a reference to a file or of one of schemes, or an *Error. A caller that gives up does not end the
// lookup for the others; the last one that gives up ends it.
func (r *Resolver) Resolve(ctx context.Context, schemes []Scheme, reference string) (string, error) {
	l := r.join(ctx, schemes, reference)
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
	}
	r.mu.Lock()
	l.waiting--
	last := l.waiting == 0
	if last && r.lookups[reference] == l {
		delete(r.lookups, reference)
	}
	r.mu.Unlock()
	if !last {
		return "", &Error{"a secret was not looked up", ctx.Err().Error()}
	}
	l.cancel()
	<-l.done
	return l.value, l.err
}

// join returns the lookup of a reference, and begins it if there is none.
func (r *Resolver) join(ctx context.Context, schemes []Scheme, reference string) *lookup {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lookups[reference]
	if l == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		l = &lookup{cancel: cancel, done: make(chan struct{})}
		if r.lookups == nil {
			r.lookups = map[string]*lookup{}
		}
		r.lookups[reference] = l
		go func() {
			defer cancel()
			l.value, l.err = r.lookUp(ctx, schemes, reference)
			r.mu.Lock()
			if r.lookups[reference] == l {
				delete(r.lookups, reference)
			}
			r.mu.Unlock()
			close(l.done)
		}()
	}
	l.waiting++
	return l
}

func (r *Resolver) lookUp(ctx context.Context, schemes []Scheme, reference string) (string, error) {
	if kept, ok := r.kept.Load(reference); ok {
		return kept.(string), nil
	}
	kind, rest, _ := strings.Cut(reference, ":")
	value, err := r.find(ctx, schemes, kind, rest)
	r.Hide.Add(value)
	if err == nil && kind != "file" {
		r.kept.Store(reference, value)
	}
	return value, err
}

// Forget drops the values of schemes.
func (r *Resolver) Forget() { r.kept.Clear() }

func (r *Resolver) find(ctx context.Context, schemes []Scheme, kind, rest string) (string, error) {
	if kind == "file" {
		return fromFile(ctx, rest)
	}
	for _, s := range schemes {
		if s.Scheme() == kind {
			return s.Resolve(ctx, rest, r.Hide)
		}
	}
	return "", &Error{"nothing resolves ${" + kind + ":…}", "write a reference of this build: ${file:PATH}, or ${NAME} for a variable"}
}

func fromFile(ctx context.Context, path string) (string, error) {
	const what = "a ${file:…} cannot be read"
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		return "", &Error{what, fmt.Sprintf("write the full path of %q, or begin it with ~/", path)}
	}
	text, err := regular.Read(ctx, path, MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Error{what, "there is no file " + path}
	} else if err != nil {
		return "", &Error{what, err.Error()}
	}
	return Checked(TrimNewline(string(text)), what)
}

// Checked returns a value, and an *Error that begins with what if it is not valid.
func Checked(value, what string) (string, error) {
	switch {
	case value == "":
		return "", &Error{what, "it is empty"}
	case strings.ContainsRune(value, 0):
		return value, &Error{what, "it has a byte 0"}
	}
	return value, nil
}

// TrimNewline removes one newline at the end.
func TrimNewline(text string) string {
	if line, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.TrimSuffix(line, "\r")
	}
	return text
}
