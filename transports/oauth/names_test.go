package oauth

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// names is a name server with one answer for all names.
type names struct {
	conn  net.PacketConn
	asked atomic.Int32

	mu    sync.Mutex
	means []netip.Addr
}

func newNames(t *testing.T) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn}
	var serving sync.WaitGroup
	serving.Go(n.serve)
	t.Cleanup(func() { conn.Close(); serving.Wait() })
	return n
}

// mean sets the addresses of all names.
func (n *names) mean(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.means = nil
	for _, a := range addresses {
		n.means = append(n.means, netip.MustParseAddr(a))
	}
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	query := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(query)
		if err != nil {
			return
		}
		n.asked.Add(1)
		if answer := n.answer(query[:size]); answer != nil {
			_, _ = n.conn.WriteTo(answer, from)
		}
	}
}

// answer answers a query (RFC 1035, 4.1).
func (n *names) answer(query []byte) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	if end += 5; end > len(query) {
		return nil
	}
	kind := binary.BigEndian.Uint16(query[end-4:])
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	var records []byte
	for _, a := range n.means {
		if a.Is4() != (kind == 1) || a.Is6() != (kind == 28) {
			continue
		}
		count++
		data := a.AsSlice()
		records = append(records, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
		records = append(records, data...)
	}
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(count), 0, 0, 0, 0}, query[12:end]...)
	return append(answer, records...)
}
