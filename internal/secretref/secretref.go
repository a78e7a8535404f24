// Package secretref resolves references to secrets in a config: keyring:NAME, cmd:COMMAND and
// file:PATH.
package secretref

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/secrets"
)

const (
	// Service is the name of the secrets' service in the keyring.
	Service = "dynmcp secrets"

	commandTime = 30 * time.Second
	maxSecret   = 64 << 10 // bytes
	maxStderr   = 4 << 10  // bytes of its end to keep
)

// Name matches the names of secrets in the keyring.
var Name = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./@-]{0,99}$`)

// A Resolver resolves references. Results of commands and the keyring are kept until Forget is called;
// files are read each time, and failures are retried. It is safe for concurrent use.
type Resolver struct {
	Hide      *redact.Redactor // receives every value
	TimeLimit time.Duration    // of a command; 0 is 30 s

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

// Resolve returns the value of a reference, or an *Error. A caller that gives up does not end the
// lookup for the others; the last one that gives up ends it.
func (r *Resolver) Resolve(ctx context.Context, reference string) (string, error) {
	l := r.join(ctx, reference)
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
func (r *Resolver) join(ctx context.Context, reference string) *lookup {
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
			l.value, l.err = r.lookUp(ctx, reference)
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

func (r *Resolver) lookUp(ctx context.Context, reference string) (string, error) {
	if kept, ok := r.kept.Load(reference); ok {
		return kept.(string), nil
	}
	kind, rest, _ := strings.Cut(reference, ":")
	value, err := r.find(ctx, kind, rest)
	r.Hide.Add(value)
	if err == nil && kind != "file" {
		r.kept.Store(reference, value)
	}
	return value, err
}

// Forget drops the results of commands and the keyring.
func (r *Resolver) Forget() { r.kept.Clear() }

func (r *Resolver) find(ctx context.Context, kind, rest string) (string, error) {
	switch kind {
	case "keyring":
		return fromKeyring(rest)
	case "file":
		return fromFile(ctx, rest)
	default:
		return r.fromCommand(ctx, rest)
	}
}

func fromKeyring(name string) (string, error) {
	what := "${keyring:" + name + "} has no value"
	if !Name().MatchString(name) {
		return "", &Error{"a ${keyring:…} has no value", "a name has letters, digits and _ . / @ -"}
	}
	value, err := keyring.Get(Service, name)
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return "", &Error{what, "store it with: dynmcp secret set " + name}
	case err != nil:
		return "", &Error{what, fmt.Sprintf("the keyring cannot be used (%v): %s", err, NoKeyring)}
	}
	return checked(value, what)
}

// NoKeyring says what to do where there is no keyring.
const NoKeyring = "take a variable of .env, ${cmd:COMMAND} or ${file:PATH} instead"

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
	text, err := regular.Read(ctx, path, maxSecret)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Error{what, "there is no file " + path}
	} else if err != nil {
		return "", &Error{what, err.Error()}
	}
	return checked(TrimNewline(string(text)), what)
}

// fromCommand runs a command. An error may come with a value: the output before the failure.
func (r *Resolver) fromCommand(ctx context.Context, line string) (string, error) {
	words, err := Split(line)
	if err == nil && (len(words) == 0 || words[0] == "") {
		err = errors.New("there is no command in it")
	}
	if err != nil {
		return "", &Error{"a ${cmd:…} failed", err.Error()}
	}
	limit := cmp.Or(r.TimeLimit, commandTime)
	what := fmt.Sprintf("${cmd:%s …} failed", filepath.Base(words[0]))
	running, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(running, words[0], words[1:]...)
	if err := guard.Batch(cmd); err != nil {
		return "", &Error{what, err.Error()}
	}
	cmd.WaitDelay = time.Second // for its children, which may hold its pipes
	stdout, stderr := &head{}, &tail{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	value := TrimNewline(string(stdout.text))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", &Error{what, fmt.Sprintf("there is no %q on the PATH", words[0])}
	case stdout.full:
		return value, &Error{what, fmt.Sprintf("it printed more than %d bytes", maxSecret)}
	case running.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("it did not end within %v", limit)
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return checked(value, what)
	}
	hint := err.Error()
	if said := r.lastLine(string(stderr.text), value); said != "" {
		hint += ", and it said: " + said
	}
	return value, &Error{what, hint}
}

// lastLine returns the last line of a command's stderr without known secrets: those of the config, of
// the environment and of its own output.
func (r *Resolver) lastLine(stderr, printed string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) == 1 && len(stderr) == maxStderr {
		return "" // it may begin within a secret
	}
	var known redact.Redactor
	known.Add(printed)
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); secrets.Named(name) {
			known.Add(value)
		}
	}
	line := known.String(r.Hide.String(lines[len(lines)-1]))
	line = secrets.Hide(line, secrets.Find("", "", line), redact.Mark)
	return display.Cut(display.Fold(line), 200)
}

// checked refuses invalid values.
func checked(value, what string) (string, error) {
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

// head keeps the data written to it, up to maxSecret.
type head struct {
	text []byte
	full bool
}

func (h *head) Write(p []byte) (int, error) {
	if h.full = h.full || len(h.text)+len(p) > maxSecret; h.full {
		return 0, io.ErrShortWrite
	}
	h.text = append(h.text, p...)
	return len(p), nil
}

// tail keeps the end of the data written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = bytes.Clone(t.text[max(0, len(t.text)-maxStderr):])
	return len(p), nil
}
