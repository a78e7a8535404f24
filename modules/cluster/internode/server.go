package internode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/transports/lines"
)

// Routes are the routes of a Server. A nil function disables its route.
type Routes struct {
	// Requests serves a host's request, with the path that the host sent.
	Requests func(w http.ResponseWriter, r *http.Request, principal string)
	// Upstream returns a function that serves an upstream server to another replica, for a
	// principal if the server runs once for each: JSON-RPC lines in and out until either side
	// closes the stream. ctx ends with serve, or shortly after that of Serve. The error is a
	// *NotHereError if the server runs elsewhere, ErrDraining if this replica accepts nothing new.
	Upstream func(ctx context.Context, server, principal string) (serve func(stream io.ReadWriteCloser), err error)
	// Result returns a stored result of a principal, and its limit in tokens.
	Result func(ctx context.Context, principal, handle string) (result json.RawMessage, limit int, ok bool)
	Logger *slog.Logger
}

// A Server serves other replicas.
type Server struct {
	opts     Routes
	identity *Identity
	log      *slog.Logger

	mu    sync.Mutex
	ended bool           // no more requests are accepted
	work  sync.WaitGroup // counts the requests in flight
}

// NewServer returns a server with an identity.
func NewServer(identity *Identity, opts Routes) *Server {
	return &Server{opts: opts, identity: identity, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))}
}

// Serve serves other replicas until ctx ends. Requests in flight then have shutdownTimeout. It
// closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // of which connections become streams
	protocols.SetHTTP2(true)
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		BaseContext:       func(net.Listener) context.Context { return life },
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         s.identity.server(),
		Protocols:         &protocols,
		ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerConnection: connBuffer,
			MaxReceiveBufferPerStream:     streamBuffer,
			SendPingTimeout:               pingAfter,
			PingTimeout:                   pingTimeout,
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(ln, "", "") }()
	var err error
	select {
	case err = <-served:
		err = fmt.Errorf("replicas: %w", err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	defer context.AfterFunc(closing, cut)() // ends streams
	if server.Shutdown(closing) != nil {
		_ = server.Close()
	}
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.work.Wait()
	return err
}

// begin counts a request. Each must be followed by s.work.Done.
func (s *Server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		panic(http.ErrAbortHandler)
	}
	s.work.Add(1)
}

// recovered answers a request whose handler panicked. It must be deferred.
func (s *Server) recovered(w http.ResponseWriter) {
	switch p := recover(); {
	case p == http.ErrAbortHandler:
		panic(p)
	case p != nil:
		s.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
		http.Error(w, fmt.Sprintf("internal error: %v", p), http.StatusInternalServerError)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.begin()
	defer s.work.Done()
	defer s.recovered(w)
	principal, err := url.QueryUnescape(r.Header.Get(headerPrincipal))
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	name, err2 := url.PathUnescape(rest)
	if err := cmp.Or(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case first == "request" && s.opts.Requests != nil:
		http.StripPrefix("/request", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.opts.Requests(w, r, principal)
		})).ServeHTTP(w, r)
	case "/"+first == lines.Path && s.opts.Upstream != nil && r.Method == http.MethodGet:
		s.upstream(w, r, name, principal)
	case first == "result" && s.opts.Result != nil && r.Method == http.MethodGet:
		s.result(w, r, name, principal)
	default:
		http.Error(w, "there is no "+r.Method+" /"+first, http.StatusNotImplemented)
	}
}

func (s *Server) result(w http.ResponseWriter, r *http.Request, handle, principal string) {
	result, limit, ok := s.opts.Result(r.Context(), principal, handle)
	if !ok {
		http.Error(w, "there is no such result", http.StatusNotFound)
		return
	}
	w.Header().Set(headerLimit, strconv.Itoa(limit))
	_, _ = w.Write(result) // an error means that the other side is gone
}

func (s *Server) upstream(w http.ResponseWriter, r *http.Request, server, principal string) {
	serve, err := s.opts.Upstream(r.Context(), server, principal)
	if err != nil {
		status := http.StatusBadGateway
		if elsewhere, ok := errors.AsType[*NotHereError](err); ok {
			w.Header().Set(headerHolder, elsewhere.Holder)
			status = http.StatusConflict
		} else if errors.Is(err, ErrDraining) {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, err.Error(), status)
		return
	}
	conn, err := lines.Accept(w, r)
	if err != nil {
		return // the other side is gone, or was told
	}
	stream := newStream(conn)
	defer stream.Close()
	defer context.AfterFunc(r.Context(), func() { stream.Close() })()
	serve(stream)
}
