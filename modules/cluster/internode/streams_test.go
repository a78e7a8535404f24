package internode

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports"
)

// serve serves replicas until the test ends, and returns the address and the connections.
func serve(t testing.TB, identity *Identity, opts Routes) *connections {
	t.Helper()
	return serveBy(t, NewServer(identity, opts))
}

func serveBy(t testing.TB, server *Server) *connections {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &connections{Listener: ln}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(ctx, c) // a test may have closed it
	}()
	t.Cleanup(func() {
		cancel()
		<-served
	})
	return c
}

func newClient(t testing.TB, identity *Identity, id string) *Client {
	c := NewClient(identity)
	t.Cleanup(c.Close)
	return c
}

// echo returns each line with word before it, until the other side closes.
func echo(stream io.ReadWriteCloser, word string) {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := io.WriteString(stream, word+line); err != nil {
			return
		}
	}
}

func TestAnUpstreamOfAnotherReplica(t *testing.T) {
	ended := make(chan error, 1)
	identity := keyed(t, seal.Random())
	at := serve(t, identity, Routes{Upstream: func(ctx context.Context, server, principal string) (func(io.ReadWriteCloser), error) {
		switch server {
		case "elsewhere":
			return nil, &NotHereError{Holder: "b"}
		case "late":
			return nil, ErrDraining
		case "broken":
			return nil, errors.New("it does not start")
		case "brief":
			return func(stream io.ReadWriteCloser) { _, _ = io.WriteString(stream, "bye\n") }, nil
		}
		return func(stream io.ReadWriteCloser) {
			defer stream.Close()
			echo(stream, server+","+principal+":")
			_, err := stream.Read(make([]byte, 1))
			ended <- err
		}, nil
	}})
	client := newClient(t, identity, "a")
	address := at.Addr().String()
	open := func(server, principal string) (io.ReadWriteCloser, error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel() // the stream must outlive ctx
		return client.Open(ctx, address, server, principal)
	}

	const server, principal = "a/b ü%2F..", "https://login.example.com so mebody?&=ü"
	stream, err := open(server, principal)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stream)
	large := strings.Repeat("x", 3<<20)
	for _, line := range []string{"1", large, "2"} {
		wrote := make(chan error, 1)
		go func() { // the other side writes before it has read all
			_, err := io.WriteString(stream, line+"\n")
			wrote <- err
		}()
		if got, err := lines.ReadString('\n'); err != nil || got != server+","+principal+":"+line+"\n" {
			t.Fatalf("got %d bytes, %v: %.200s", len(got), err, got)
		}
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the other side reads on after the end of the stream")
	} // the error is io.EOF, or that of the ended request

	if stream, err = open("brief", ""); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(stream); err != nil || string(text) != "bye\n" {
		t.Errorf("a stream that the other side closes: got %q, %v", text, err)
	}
	stream.Close()

	var elsewhere *NotHereError
	if _, err := open("elsewhere", ""); !errors.As(err, &elsewhere) || elsewhere.Holder != "b" {
		t.Errorf("got %v", err)
	}
	if _, err := open("late", ""); !errors.Is(err, ErrDraining) {
		t.Errorf("got %v", err)
	}
	if _, err := open("broken", ""); err == nil || err.Error() != "it does not start" {
		t.Errorf("got %v", err)
	}
}

// A stream whose connection breaks ends at both ends.
func TestAStreamIsLost(t *testing.T) {
	ended := make(chan error, 1)
	identity := keyed(t, seal.Random())
	at := serve(t, identity, Routes{Upstream: func(ctx context.Context, _, _ string) (func(io.ReadWriteCloser), error) {
		return func(stream io.ReadWriteCloser) {
			echo(stream, "")
			_, err := stream.Read(make([]byte, 1))
			ended <- err
		}, nil
	}})
	stream, err := newClient(t, identity, "a").Open(t.Context(), at.Addr().String(), "x", "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := io.WriteString(stream, "x\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stream, make([]byte, 2)); err != nil { // the other side serves it
		t.Fatal(err)
	}
	at.cut()
	if _, err := stream.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %v", err)
	}
	if err := <-ended; err == nil {
		t.Errorf("the other side got %v", err)
	}
}

// The last lines arrive although the end that sent them has not read all, and a stream ends with its
// server.
func TestEndOfAStream(t *testing.T) {
	t.Parallel()
	identity := keyed(t, seal.Random())
	last := strings.Repeat("x", 1<<20) + "\n"
	sent := make(chan struct{})
	server := NewServer(identity, Routes{Upstream: func(_ context.Context, name, _ string) (func(io.ReadWriteCloser), error) {
		return func(stream io.ReadWriteCloser) {
			if name == "idle" {
				echo(stream, "")
				return
			}
			<-sent
			_, _ = io.WriteString(stream, last)
			sent <- struct{}{}
		}, nil
	}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ln) }()
	client := newClient(t, identity, "a")
	open := func(name string) io.ReadWriteCloser {
		stream, err := client.Open(t.Context(), ln.Addr().String(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stream.Close() })
		return stream
	}
	busy, idle := open("busy"), open("idle")
	for range 100 {
		if _, err := io.WriteString(busy, call(1, "x")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	sent <- struct{}{}
	<-sent
	time.Sleep(100 * time.Millisecond) // it is about to close its end
	if got, err := io.ReadAll(busy); string(got) != last || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	end()
	if got, err := io.ReadAll(idle); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Empty lines are sent between lines only, and are not read.
func TestEmptyLinesStayBetweenLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		writer, reader := newStream(near), newStream(far)
		go io.Copy(io.Discard, writer)
		go func() {
			defer writer.Close()
			for _, part := range []string{"one\n", "tw", "o\n"} {
				if _, err := io.WriteString(writer, part); err != nil {
					t.Error(err)
				}
				if part != "tw" {
					time.Sleep(10 * silence) // the other end is not lost
				} else {
					time.Sleep(silence / 2)
				}
			}
		}()
		got, err := io.ReadAll(reader)
		if string(got) != "one\ntwo\n" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		reader.Close()
	})
}

// A replica that answers no ping is lost: all requests on its connection end.
func TestSilentReplicaIsLost(t *testing.T) {
	t.Parallel()
	identity := keyed(t, seal.Random())
	reached := make(chan struct{})
	lost := make(chan error, 1)
	server := NewServer(identity, Routes{
		Upstream: func(ctx context.Context, _, _ string) (func(io.ReadWriteCloser), error) {
			return func(stream io.ReadWriteCloser) {
				_, err := stream.Read(make([]byte, 1))
				lost <- err
			}, nil
		},
		Requests: func(_ http.ResponseWriter, r *http.Request, _ string) {
			close(reached)
			<-r.Context().Done()
		},
	})
	at := serveBy(t, server)
	address, stop := between(t, at.Addr().String())
	client := newClient(t, identity, "a")
	client.transport.HTTP2.SendPingTimeout /= 10 // for a shorter test
	client.transport.HTTP2.PingTimeout /= 2
	stream, err := client.Open(t.Context(), address, "x", "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	answered := make(chan error, 1)
	go func() {
		resp, err := client.Request(address, "").RoundTrip(small(t))
		if err == nil {
			resp.Body.Close()
		}
		answered <- err
	}()
	select {
	case <-reached:
	case err := <-answered:
		t.Fatal(err)
	}
	stop()
	if _, err := stream.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %v", err)
	}
	if err := <-lost; err == nil {
		t.Errorf("the other side got %v", err)
	}
	var failure *transports.Failure
	if err := <-answered; !errors.As(err, &failure) || failure.Outcome != transports.Unknown {
		t.Errorf("the request: got %v", err)
	}
}

// between forwards connections to an address. After stop, nothing that is sent on them arrives.
func between(t *testing.T, to string) (address string, stop func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	var work sync.WaitGroup
	pass := func(from, to net.Conn) {
		defer from.Close()
		defer to.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			select {
			case <-stopped:
				continue
			default:
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	work.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			other, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				conn.Close()
				continue
			}
			work.Go(func() { pass(conn, other) })
			work.Go(func() { pass(other, conn) })
		}
	})
	t.Cleanup(work.Wait)
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String(), sync.OnceFunc(func() { close(stopped) })
}

// small returns a small request that can be sent again.
func small(t testing.TB) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://any/mcp", strings.NewReader(call(1, "x")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A server that shuts down answers the requests in flight. A later request is answered or fails
// with the outcome not_sent, never with unknown.
func TestNoRequestIsLostWhenAServerEnds(t *testing.T) {
	identity := keyed(t, seal.Random())
	begun, finish := make(chan struct{}), make(chan struct{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- NewServer(identity, Routes{Requests: func(w http.ResponseWriter, _ *http.Request, principal string) {
			if principal == "slow" {
				close(begun)
				<-finish
			}
			_, _ = io.WriteString(w, "answer")
		}}).Serve(ctx, ln)
	}()
	client := newClient(t, identity, "a")
	post := func(principal string) error {
		resp, err := client.Request(ln.Addr().String(), principal).RoundTrip(small(t))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && string(text) != "answer" {
			err = errors.New(string(text))
		}
		return err
	}
	slow := make(chan error, 1)
	go func() { slow <- post("slow") }()
	<-begun
	var posting sync.WaitGroup
	for range 4 {
		posting.Go(func() {
			for {
				if err := post(""); err != nil {
					if failure, ok := errors.AsType[*transports.Failure](err); !ok || failure.Outcome != transports.NotSent {
						t.Errorf("a request during the shutdown: %v", err)
					}
					return
				}
			}
		})
	}
	end()
	posting.Wait()
	close(finish)
	if err := <-slow; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
