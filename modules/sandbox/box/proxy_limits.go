//go:build linux || darwin

package box

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/publicip"
)

// Limits of a proxy.
const (
	maxStrangers   = 32 // connections that have not shown the password
	maxConnections = 64 // others, tunnels too
	maxHeader      = 16 << 10
	passwordWithin = 2 * time.Second
	connectWithin  = 30 * time.Second
	halfOpen       = 10 * time.Second // without data, after one end of a tunnel has closed its side

	// spareDescriptors are kept for other work of the process, such as to start servers.
	spareDescriptors = 256
)

// A door is the listener of a proxy. Every program of this machine can connect to it.
type door struct {
	net.Listener

	mu        sync.Mutex
	strangers []*visitor // oldest first
	known     int        // connections that have shown the password
}

// A visitor is a connection that a door has accepted.
type visitor struct {
	net.Conn
	door  *door
	known bool // guarded by door.mu
	left  bool // guarded by door.mu
}

// Accept implements net.Listener. A stranger too many takes the place of the oldest.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if scarce(conn) {
			conn.Close()
			continue
		}
		v := &visitor{Conn: conn, door: d}
		if oldest := d.enter(v); oldest != nil {
			oldest.Close()
		}
		return v, nil
	}
}

// enter adds a stranger, and returns one that has to leave for it, or nil.
func (d *door) enter(v *visitor) (oldest *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.strangers) == maxStrangers {
		oldest = d.strangers[0]
	}
	d.strangers = append(d.strangers, v)
	return oldest
}

// admit makes a stranger known, and reports whether there is a place for it.
func (d *door) admit(v *visitor) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.known || v.left {
		return v.known
	}
	if d.known == maxConnections {
		return false
	}
	d.strangers = slices.DeleteFunc(d.strangers, func(other *visitor) bool { return other == v })
	d.known++
	v.known = true
	return true
}

// Close gives its place free.
func (v *visitor) Close() error {
	v.door.leave(v)
	return v.Conn.Close()
}

func (d *door) leave(v *visitor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case v.left:
	case v.known:
		d.known--
	default:
		d.strangers = slices.DeleteFunc(d.strangers, func(other *visitor) bool { return other == v })
	}
	v.left = true
}

// CloseWrite ends the connection in one direction.
func (v *visitor) CloseWrite() error { return closeWrite(v.Conn) }

// visitorKey is the key of the connection in the context of its requests.
type visitorKey struct{}

func withVisitor(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, conn)
}

// admit reports whether the connection of a request with the password may go on. It answers others.
func (p *proxy) admit(w http.ResponseWriter, r *http.Request) bool {
	if p.door.admit(r.Context().Value(visitorKey{}).(*visitor)) {
		return true
	}
	why := fmt.Sprintf("the sandbox does not allow more than %d connections at a time", maxConnections)
	p.denied(why)
	w.Header().Set("Connection", "close")
	http.Error(w, why, http.StatusServiceUnavailable)
	return false
}

// scarce reports whether few descriptors are left after that of a connection. The kernel gives the
// lowest that is free.
func scarce(conn net.Conn) bool {
	var limit unix.Rlimit
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return false
	}
	few := false
	_ = raw.Control(func(fd uintptr) {
		few = uint64(fd)+min(spareDescriptors, limit.Cur/4) >= limit.Cur
	})
	return few
}

// relay copies in both directions, until both have ended or nothing more passes in the one that is
// left: of an end that is gone, only its own direction ends.
func (p *proxy) relay(here net.Conn, fromHere io.Reader, there *countedConn) {
	var copying sync.WaitGroup
	ended := make(chan struct{}, 2)
	for _, way := range []struct {
		to   net.Conn
		from io.Reader
	}{{there, fromHere}, {here, there}} {
		copying.Go(func() {
			_, _ = io.Copy(way.to, way.from)
			_ = closeWrite(way.to)
			ended <- struct{}{}
		})
	}
	<-ended
	for done := false; !done; {
		passed := there.passed.Load()
		select {
		case <-ended:
			done = true
		case <-time.After(p.halfOpen):
			done = there.passed.Load() == passed
		}
	}
	here.Close()
	there.Close()
	copying.Wait()
}

// A countedConn counts the bytes that pass. It hides all methods that copy except Read and Write.
type countedConn struct {
	net.Conn
	bytes  *atomic.Int64 // of all connections
	passed atomic.Int64  // of this one
}

func (c *countedConn) count(n int) {
	c.bytes.Add(int64(n))
	c.passed.Add(int64(n))
}

// Read implements net.Conn.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.count(n)
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.count(n)
	return n, err
}

// CloseWrite ends the connection in one direction.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends a connection in one direction.
func closeWrite(conn net.Conn) error { return conn.(interface{ CloseWrite() error }).CloseWrite() }

// machine returns the addresses of this machine. All that a loopback interface has a network for
// are its addresses.
func machine() (all []netip.Prefix, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, address := range addresses {
			network, err := netip.ParsePrefix(address.String())
			if err != nil {
				continue // of another kind
			}
			if i.Flags&net.FlagLoopback == 0 {
				network = netip.PrefixFrom(network.Addr(), network.Addr().BitLen())
			}
			all = append(all, network)
		}
	}
	return all, nil
}

// isElsewhere reports whether an address is public, and none of this machine's.
func isElsewhere(ip netip.Addr, machine []netip.Prefix) bool {
	return publicip.Is(ip) && !slices.ContainsFunc(machine, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// leadsBack reports whether a connection ends at this machine: the kernel gives one to an address of
// its own that address as the local one.
func leadsBack(conn net.Conn) bool {
	local, remote := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr)
	return local.IP.Equal(remote.IP)
}
