package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// selfSigned returns a certificate for 127.0.0.1, which change may alter, and a pool that trusts it.
func selfSigned(t *testing.T, change func(*x509.Certificate)) (cert tls.Certificate, roots *x509.CertPool) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "upstream"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(2 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	change(template)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// trusting returns the configuration of connections that trust a pool.
func trusting(roots *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: roots} }

func unchanged(*x509.Certificate) {}

// Nothing is sent to an upstream without a valid certificate or with an old version of TLS. The
// failure says why.
func TestHTTPInvalidCertificates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, says string
		change     func(*x509.Certificate)
		most       uint16 // the newest version of TLS
		stranger   bool   // the certificate is not trusted
		hint       string
	}{
		{"expired", "expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }, 0, false, "renew its certificate"},
		{"not valid yet", "not yet valid", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }, 0, false, "renew its certificate"},
		{"of another host", "x509", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} }, 0, false, "that of another host"},
		{"not trusted", "unknown authority", unchanged, 0, true, `"ca" in "tls"`},
		{"TLS 1.0", "protocol version", unchanged, tls.VersionTLS10, false, ""},
		{"TLS 1.1", "protocol version", unchanged, tls.VersionTLS11, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cert, roots := selfSigned(t, test.change)
			if test.stranger {
				_, roots = selfSigned(t, unchanged)
			}
			var arrived atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
			server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: test.most}
			server.Config.ErrorLog = quietly
			server.StartTLS()
			defer server.Close()
			err := callOnly(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: server.URL}, ConnOptions{tls: trusting(roots)})
			if f := wantFailure(t, err, transports.CodeUnreachable, transports.NotSent); !strings.Contains(f.Error(), test.says) || !strings.Contains(f.Hint, test.hint) || test.hint == "" && f.Hint != "" {
				t.Errorf("got %v with the hint %q, want it to say %q", f, f.Hint, test.says)
			}
			if n := arrived.Load(); n != 0 {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}

// secure serves a scripted upstream over TLS and HTTP/2, and returns a pool that trusts it.
func secure(t *testing.T, s *scripted) (schema.Server, *x509.CertPool) {
	t.Helper()
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quietly
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: s.URL}, roots
}

// With HTTP/2 the calls share a connection. A stream that breaks or stalls fails only its call.
func TestHTTP2BrokenAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		code int64
		call func(w http.ResponseWriter, r *http.Request, id string)
	}{
		{"reset before the header", transports.CodeUnreachable, func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) }},
		{"reset within the JSON", transports.CodeExited, func(w http.ResponseWriter, _ *http.Request, id string) {
			plain(w, `{"jsonrpc":"2.0","id":`+id)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		{"reset within an event", transports.CodeExited, func(w http.ResponseWriter, _ *http.Request, id string) {
			events(w, "data: {\"id\":"+id)
			panic(http.ErrAbortHandler)
		}},
		{"JSON that stalls", transports.CodeUnreachable, func(w http.ResponseWriter, r *http.Request, _ string) { partly(w, r, "{") }},
		{"an event that stalls", transports.CodeUnreachable, func(w http.ResponseWriter, r *http.Request, _ string) {
			events(w, "data: {")
			<-r.Context().Done()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			goOn := make(chan struct{})
			s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
				if r.ProtoMajor != 2 {
					t.Errorf("the call arrived over %s", r.Proto)
				}
				switch calls.Add(1) {
				case 1:
					<-goOn
				case 2:
					test.call(w, r, id)
					return
				}
				fine(w, id)
			}}
			opts := hurried
			server, roots := secure(t, s)
			opts.tls = trusting(roots)
			c := dial(t, server, opts)
			other := start(c, toolCall(`{}`))
			s.wait(t, "POST tools/call")
			_, err := tool(t, c, "x", "{}")
			wantFailure(t, err, test.code, transports.Unknown)
			close(goOn)
			if err := <-other; err != nil {
				t.Errorf("the other call: %v", err)
			}
			if _, err := tool(t, c, "x", "{}"); err != nil || calls.Load() != 3 {
				t.Errorf("the next call: %v; %d calls arrived, want 3", err, calls.Load())
			}
		})
	}
}

// The types and flags of HTTP/2 frames that h2 uses (RFC 9113, 6).
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7

	endStream, endHeaders, ack = 0x1, 0x4, 0x1
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	return append([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}, payload...)
}

// An h2 is an HTTP/2 server whose answers a test writes as frames.
type h2 struct {
	call  func(conn net.Conn, stream uint32, id string) // answers tools/call
	calls atomic.Int32
}

// serve returns the entry of the server, and a pool that trusts it.
func (s *h2) serve(t *testing.T) (schema.Server, *x509.CertPool) {
	t.Helper()
	cert, roots := selfSigned(t, unchanged)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.converse(conn)
		}
	}()
	return schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: "https://" + l.Addr().String()}, roots
}

func (s *h2) converse(conn net.Conn) {
	defer conn.Close()
	_, _ = io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	_, _ = conn.Write(frame(frameSettings, 0, 0, nil))
	bodies := map[uint32][]byte{}
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		stream := uint32(head[6])<<16 | uint32(head[7])<<8 | uint32(head[8])
		if head[3] == framePing && head[4]&ack == 0 {
			_, _ = conn.Write(frame(framePing, ack, 0, payload))
		}
		if head[3] == frameData {
			bodies[stream] = append(bodies[stream], payload...)
		}
		if head[3] <= frameHeaders && head[4]&endStream != 0 {
			s.answer(conn, stream, bodies[stream])
		}
	}
}

func (s *h2) answer(conn net.Conn, stream uint32, body []byte) {
	m, _ := wire.Parse(body)
	switch m.Method {
	case "tools/call":
		s.calls.Add(1)
		s.call(conn, stream, string(m.ID))
	case "initialize":
		h2JSON(conn, stream, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}}`)
	case "": // the GET stream
		_, _ = conn.Write(frame(frameHeaders, endStream|endHeaders, stream, []byte{0x8d})) // :status 404
	default:
		_, _ = conn.Write(frame(frameHeaders, endStream|endHeaders, stream, []byte{0x89})) // :status 204
	}
}

func h2JSON(conn net.Conn, stream uint32, text string) {
	const kind = "application/json"
	header := append([]byte{0x88, 0x0f, 0x10, byte(len(kind))}, kind...) // :status 200, content-type
	_, _ = conn.Write(append(frame(frameHeaders, endHeaders, stream, header), frame(frameData, endStream, stream, []byte(text))...))
}

// A call is sent once, whichever way an HTTP/2 server fails it, and the next call works. net/http
// would send some of these again.
func TestHTTP2SentOnce(t *testing.T) {
	t.Parallel()
	const protocolError, internalError, refusedStream = 1, 2, 7
	reset := func(code byte) func(net.Conn, uint32, string) {
		return func(conn net.Conn, stream uint32, _ string) {
			_, _ = conn.Write(frame(frameReset, 0, stream, []byte{0, 0, 0, code}))
		}
	}
	for name, leave := range map[string]func(conn net.Conn, stream uint32, id string){
		"PROTOCOL_ERROR": reset(protocolError),
		"INTERNAL_ERROR": reset(internalError),
		"REFUSED_STREAM": reset(refusedStream),
		"GOAWAY":         func(conn net.Conn, _ uint32, _ string) { _, _ = conn.Write(frame(frameGoAway, 0, 0, make([]byte, 8))) },
		"GOAWAY that includes it": func(conn net.Conn, stream uint32, _ string) {
			_, _ = conn.Write(frame(frameGoAway, 0, 0, []byte{0, 0, 0, byte(stream), 0, 0, 0, internalError}))
			conn.Close()
		},
		"PROTOCOL_ERROR after an interim answer": func(conn net.Conn, stream uint32, _ string) {
			_, _ = conn.Write(frame(frameHeaders, endHeaders, stream, []byte("\x08\x03103"))) // :status 103
			reset(protocolError)(conn, stream, "")
		},
		"closed": func(conn net.Conn, _ uint32, _ string) { conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &h2{}
			s.call = func(conn net.Conn, stream uint32, id string) {
				if s.calls.Load() == 2 {
					leave(conn, stream, id)
					return
				}
				h2JSON(conn, stream, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
			}
			server, roots := s.serve(t)
			c := dial(t, server, ConnOptions{HandshakeOnly: true, tls: trusting(roots)})
			if _, err := tool(t, c, "x", "{}"); err != nil {
				t.Fatal(err)
			}
			_, err := tool(t, c, "x", "{}")
			wantFailure(t, err, transports.CodeUnreachable, transports.Unknown)
			if _, err := tool(t, c, "x", "{}"); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if n := s.calls.Load(); n != 3 || c.Err() != nil {
				t.Errorf("%d calls arrived, want 3; the connection ended: %v", n, c.Err())
			}
		})
	}
}

// An HTTP/2 connection that stalls in the middle of a frame ends because it answers no ping.
func TestHTTP2Stalls(t *testing.T) {
	t.Parallel()
	s := &h2{}
	s.call = func(conn net.Conn, stream uint32, id string) {
		if s.calls.Load() == 1 {
			_, _ = conn.Write(frame(frameHeaders, endHeaders, stream, make([]byte, 100))[:20])
			awaitEnd(conn)
			return
		}
		h2JSON(conn, stream, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
	}
	opts := hurried
	opts.timing.http.ping = time.Second
	server, roots := s.serve(t)
	opts.tls = trusting(roots)
	c := dial(t, server, opts)
	_, err := tool(t, c, "x", "{}")
	if f := wantFailure(t, err, transports.CodeUnreachable, transports.Unknown); !strings.Contains(f.Error(), "lost") {
		t.Errorf("got %v", f)
	}
	if _, err := tool(t, c, "x", "{}"); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
