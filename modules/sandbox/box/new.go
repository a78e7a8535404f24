//go:build linux || darwin

// Package box limits a server for one start: it makes the restrictions of the server, its temporary directory,
// and the proxy through which it reaches the hosts of its entry.
package box

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// A Sandbox is made for one start of a server. Close removes its resources.
type Sandbox struct {
	Temp         string // the server's own temporary directory
	restrictions *sandbox.Restrictions
	proxy        *proxy // nil without a list of hosts
	learns       bool   // nothing is limited
	log          *slog.Logger
	onDenied     func(why string) // called for each refused connection

	listener   *listener // nil if unset
	registries []copied

	building sync.WaitGroup
	err      error    // of building
	write    []string // paths that the server may change, without symbolic links

	mu     sync.Mutex
	denied int
	last   []string // why the last connections were refused, oldest first
}

// New makes the sandbox of a server: the access that it needs to run, given by
// [Server.Policy], a temporary directory, and the proxy if its network is a list of hosts.
// denied is called for each refused connection; it must not block.
func New(s Server, log *slog.Logger, denied func(why string)) (*Sandbox, error) {
	b := &Sandbox{restrictions: new(sandbox.Restrictions), learns: s.Trace != nil && s.Trace.Learn, log: log, onDenied: denied}
	b.Temp = os.TempDir() + "/dynmcp-" + s.Name + "-" + rand.Text()[:12]
	b.registries = s.registries() // while it learns, too: it would need the passwords
	var err error
	if s.Network == sandbox.OnlyByProxy || b.learns {
		if b.proxy, err = newProxy(s.Hosts, b.deny, s.Trace, log); err != nil {
			return nil, err
		}
	}
	if !b.learns {
		if b.restrictions, err = sandbox.Begin(sandbox.Policy{Network: s.Network, BestEffort: s.BestEffort}); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	b.building.Go(func() { b.err = b.build(s) })
	if s.Trace != nil || runtime.GOOS != "linux" { // only the guard on Linux waits for the filter
		err = b.built()
	}
	if s.Trace != nil {
		s.Trace.exclude(b.Temp, b.proxy.address())
	}
	if err == nil {
		err = b.listen(s)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	for _, part := range b.restrictions.Missing {
		log.Warn("sandbox incomplete: this system cannot restrict " + part)
	}
	return b, nil
}

// build does the work that takes a millisecond, in parallel with most of the start.
func (b *Sandbox) build(s Server) error {
	if err := os.Mkdir(b.Temp, 0o700); err != nil {
		return err
	}
	for _, config := range b.registries {
		if err := os.WriteFile(b.Temp+"/"+config.name, []byte(config.text), 0o600); err != nil {
			return err
		}
	}
	if b.learns {
		return nil
	}
	for _, dir := range s.installsInto() { // access to a missing one cannot be granted
		if filepath.IsAbs(dir) {
			_ = os.MkdirAll(dir, 0o755) // the runner reports why it cannot use it
		}
	}
	policy := s.Policy()
	policy.Traced = s.Trace != nil
	policy.Write = append(policy.Write, b.Temp)
	b.write = sandbox.Resolved(policy.Write)
	if b.proxy != nil {
		policy.Proxy = b.proxy.Port()
	}
	return b.restrictions.Build(policy)
}

// built waits for the work that New started.
func (b *Sandbox) built() error {
	b.building.Wait()
	return b.err
}

// writable returns the paths that the server may change.
func (b *Sandbox) writable() []string {
	b.building.Wait()
	return b.write
}

// Env returns additional variables for the server.
func (b *Sandbox) Env() []string {
	env := []string{"TMPDIR=" + b.Temp, "TMP=" + b.Temp, "TEMP=" + b.Temp}
	for _, config := range b.registries {
		env = append(env, config.variable+"="+b.Temp+"/"+config.name)
	}
	if b.proxy != nil {
		env = append(env, b.proxy.Environment()...)
	}
	return env
}

// maxDenials is the number of refused connections whose reasons are kept.
const maxDenials = 5

// deny logs and reports a refused connection.
func (b *Sandbox) deny(why string) {
	b.log.Warn("a connection was refused", "why", why)
	b.onDenied(why)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied++
	b.last = append(b.last, why)
	b.last = b.last[max(0, len(b.last)-maxDenials):]
}

// Status describes the sandbox, nil without one.
func (b *Sandbox) Status() *event.Sandbox {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	st := &event.Sandbox{Missing: b.restrictions.Missing, Denied: b.denied, LastDenied: slices.Clone(b.last)}
	if b.proxy != nil {
		st.ProxyBytes = b.proxy.Bytes()
	}
	return st
}

// Close ends the proxy and removes the temporary directory. The server must have ended.
func (b *Sandbox) Close() error {
	if b == nil {
		return nil
	}
	b.building.Wait()
	if b.proxy != nil {
		b.proxy.Close()
	}
	b.listener.close()
	return errors.Join(b.restrictions.Close(), removeTree(b.Temp))
}
