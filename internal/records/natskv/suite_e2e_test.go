//go:build e2e

package natskv

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
	"github.com/dynmcp/dynmcp/internal/records/kvtest"
)

// A proxy passes connections on to an address, and can be cut.
type proxy struct {
	listener net.Listener
	known    chan struct{} // closed when there is an address
	ended    chan struct{}
	wg       sync.WaitGroup

	mu      sync.Mutex
	address string
	off     bool
	conns   map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, known: make(chan struct{}), ended: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	return p
}

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[from] = true
		if p.off {
			from.Close()
		}
		p.mu.Unlock()
		p.wg.Go(func() {
			defer from.Close()
			select {
			case <-p.known:
			case <-p.ended:
				return
			}
			p.mu.Lock()
			address := p.address
			p.mu.Unlock()
			to, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer to.Close()
			p.wg.Go(func() {
				_, _ = io.Copy(to, from)
				to.Close()
			})
			_, _ = io.Copy(from, to)
		})
	}
}

// forwardTo sets the address that the proxy passes connections on to.
func (p *proxy) forwardTo(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address == "" {
		close(p.known)
	}
	p.address = address
}

func (p *proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = false
}

func (p *proxy) end() {
	p.listener.Close()
	close(p.ended)
	p.Cut()
	p.wg.Wait()
}

// A proxied store reaches its node by way of a proxy.
type proxied struct {
	*Store
	*proxy
}

func TestNATS(t *testing.T) {
	t.Parallel()
	t.Run("suite", func(t *testing.T) {
		node := natstest.Start(t, "")
		kvtest.Run(t, func(t *testing.T) kvtest.Connection {
			p := newProxy(t)
			t.Cleanup(p.end)
			p.forwardTo(strings.TrimPrefix(node.URL, "nats://"))
			s, err := Open(StoreOptions{URLs: []string{"nats://" + p.listener.Addr().String()}, Name: t.Name(), answer: patience / 4})
			if err != nil {
				t.Fatal(err)
			}
			return proxied{s, p}
		})
	})
}
