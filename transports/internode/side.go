package internode

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of sides.
const (
	sideBody = 64 << 10         // of a request; net/http reads as much for a handler that does not
	sideFor  = 10 * time.Minute // that it is used for
	maxSides = 256              // of a client, to all replicas
	maxIdle  = 32               // of them to one replica
)

// A side is a connection of HTTP/1.1 beside that of HTTP/2 to the same replica, for small
// requests: one at a time, which its own goroutine writes in one piece, and whose answer
// it reads. On HTTP/2 it hands them to goroutines of the connection, and header and body
// leave one after the other, which takes more than twice as long.
//
// A side lives with a request over HTTP/2, by which it learns what HTTP/1.1 cannot say:
// when that breaks off the replica is dead, as its pings find, and the side is closed; when it
// ends the replica is about to end, and the side gets no further request. So none is sent
// that the other side closes the connection on.
type side struct {
	address string
	conn    *tls.Conn
	in      *bufio.Reader
	out     *bufio.Writer
	life    context.Context
	end     context.CancelFunc // of life, which closes it
	retired bool               // gets no further request
}

// sides are those of a client.
type sides struct {
	ctx  context.Context // ends with the client
	stop context.CancelFunc

	mu       sync.Mutex
	watching sync.WaitGroup // for each that is open; none begins when ctx has ended
	open     int
	idle     map[string][]*side // by address; the last one was used last
}

// takeSide returns a side to an address, nil where there is none to be had. The error is
// that the replica cannot be reached at all.
func (c *Client) takeSide(ctx context.Context, address string) (*side, error) {
	for {
		c.mu.Lock()
		idle := c.idle[address]
		if len(idle) == 0 {
			break
		}
		s := idle[len(idle)-1]
		c.idle[address] = idle[:len(idle)-1]
		c.mu.Unlock()
		if quiet(s.conn.NetConn()) {
			return s, nil
		}
		s.end() // the replica has just died
	}
	if c.open == maxSides || c.ctx.Err() != nil {
		c.mu.Unlock()
		return nil, nil
	}
	c.open++
	c.watching.Add(1)
	c.mu.Unlock()
	s, with, err := c.openSide(ctx, address)
	if s != nil {
		go c.watch(s, with)
	} else {
		c.closed()
	}
	return s, err
}

// closed says that a side is not open any more.
func (c *Client) closed() {
	c.mu.Lock()
	c.open--
	c.mu.Unlock()
	c.watching.Done()
}

// openSide connects a side, and returns the answer that it lives with.
func (c *Client) openSide(ctx context.Context, address string) (s *side, with io.ReadCloser, err error) {
	life, end := context.WithCancel(c.ctx)
	defer context.AfterFunc(ctx, end)()
	resp, err := c.transport.RoundTrip((&http.Request{Method: http.MethodGet, URL: target(address, "beside", ""), Header: http.Header{}}).WithContext(life))
	if err != nil {
		end()
		return nil, nil, err
	}
	var conn net.Conn
	if resp.StatusCode == http.StatusOK { // else it is about to end, or of a release that has no sides
		config := c.identity.client()
		config.NextProtos = []string{"http/1.1"}
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialFor}, Config: config}
		conn, err = dialer.DialContext(life, "tcp", address)
	}
	if conn == nil || err != nil {
		end()
		resp.Body.Close()
		return nil, nil, nil // HTTP/2 is there
	}
	secured := conn.(*tls.Conn)
	_ = secured.NetConn().(*net.TCPConn).SetReadBuffer(streamRoom) // what a request has on HTTP/2
	return &side{address: address, conn: secured, in: bufio.NewReader(conn), out: bufio.NewWriterSize(conn, 16<<10), life: life, end: end}, resp.Body, nil
}

// watch closes a side when what it lives with is over.
func (c *Client) watch(s *side, with io.ReadCloser) {
	defer c.closed()
	_, err := io.Copy(io.Discard, with)
	with.Close()
	c.mu.Lock()
	s.retired = true
	at := slices.Index(c.idle[s.address], s)
	if at >= 0 {
		c.idle[s.address] = slices.Delete(c.idle[s.address], at, at+1)
	}
	c.mu.Unlock()
	if err == nil && at < 0 {
		<-s.life.Done() // its request may end
	}
	s.end()
	s.conn.Close()
}

// putSide takes a side back whose request is over.
func (c *Client) putSide(s *side) {
	c.mu.Lock()
	kept := !s.retired && len(c.idle[s.address]) < maxIdle
	if kept {
		c.idle[s.address] = append(c.idle[s.address], s)
	}
	c.mu.Unlock()
	if !kept {
		s.end()
	}
}

// send makes a request by a side, which its answer has until that was read.
func (c *Client) send(s *side, r *http.Request) (resp *http.Response, err error) {
	stop := context.AfterFunc(r.Context(), s.end)
	if err = r.Write(s.out); err == nil {
		err = s.out.Flush()
	}
	if err == nil {
		resp, err = http.ReadResponse(s.in, r)
	}
	if err != nil {
		stop()
		s.end()
		return nil, err
	}
	resp.Body = &sideAnswer{resp.Body, func(whole bool) {
		if stop() && whole && !resp.Close {
			c.putSide(s)
		} else {
			s.end()
		}
	}}
	return resp, nil
}

// A sideAnswer is the body of an answer that comes by a side. It is read and closed by
// one goroutine.
type sideAnswer struct {
	io.ReadCloser
	over func(whole bool) // nil when it was called
}

// Read implements io.Reader.
func (a *sideAnswer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && a.over != nil {
		a.over(err == io.EOF)
		a.over = nil
	}
	return n, err
}

// Close implements io.Closer.
func (a *sideAnswer) Close() error {
	if a.over != nil {
		a.over(false)
		a.over = nil
	}
	return nil
}
