package sandbox

import (
	"errors"
	"log/slog"
	"os"

	"github.com/dynmcp/dynmcp/internal/guard"
)

// A Sandbox is made for one start of a server. Close removes what belongs to it.
type Sandbox struct {
	Policy Policy
	Temp   string // the server's own temporary directory
	walls  *Walls
	proxy  *Proxy // nil without a list of hosts
}

// New makes the sandbox of a server: what it needs to run, which [Server.Policy] says, a
// temporary directory, and the proxy if its network is a list of hosts. refused is told of
// connections that it refuses; it must not block.
func New(s Server, log *slog.Logger, refused func(why string)) (*Sandbox, error) {
	b := &Sandbox{}
	var err error
	if b.Temp, err = os.MkdirTemp("", "dynmcp-"+s.Name+"-"); err != nil {
		return nil, err
	}
	b.Policy = s.Policy()
	b.Policy.Write = append(b.Policy.Write, b.Temp)
	if s.Network == OnlyByProxy {
		b.proxy, err = NewProxy(s.Hosts, func(_, why string) {
			log.Warn("a connection was refused", "why", why)
			refused(why)
		})
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.Policy.Proxy = b.proxy.Port()
	}
	if b.walls, err = Build(b.Policy); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	for _, part := range b.walls.Missing {
		log.Warn("the sandbox is not whole: this system cannot limit " + part)
	}
	return b, nil
}

// Walls returns what the guard puts around the server, nil without a sandbox.
func (b *Sandbox) Walls() *guard.Walls {
	if b == nil {
		return nil
	}
	return &guard.Walls{Ruleset: b.walls.Ruleset, Filter: b.walls.Filter}
}

// Env returns the variables that the server gets in addition.
func (b *Sandbox) Env() []string {
	env := []string{"TMPDIR=" + b.Temp, "TMP=" + b.Temp, "TEMP=" + b.Temp}
	if b.proxy != nil {
		env = append(env, b.proxy.Environment()...)
	}
	return env
}

// Close ends the proxy and removes the temporary directory. The server has ended.
func (b *Sandbox) Close() error {
	if b == nil {
		return nil
	}
	if b.proxy != nil {
		b.proxy.Close()
	}
	return errors.Join(b.walls.Close(), os.RemoveAll(b.Temp))
}
