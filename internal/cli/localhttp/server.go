// Package localhttp is the private HTTP server of a run, and the way to it for other programs of
// the same user. Its address is a path: of a unix socket or, on Windows, of a file with a port of
// the loopback interface and a secret, which only the user can read.
//
// Every run has one, which is found in the runtime directory by its process id. That of a run for
// many hosts also has a name, which a lock keeps for one run at a time.
package localhttp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/process"
	"github.com/dynmcp/dynmcp/transports/lines"
)

// A Server is the private HTTP server of a run. If it has a name and nobody holds the lock beside
// it, the name is left over from a killed run.
type Server struct {
	Options
	path    string
	link    string      // the second path of a server with a name
	lock    *os.File    // nil without a name
	program fs.FileInfo // of this process, nil if unknown
	server  http.Server

	mu       sync.Mutex
	listener net.Listener
	secret   secret
	file     fs.FileInfo // at path
	serve    func(context.Context, net.Conn) error
	ctx      context.Context // of the hosts
	hosts    int
	served   int       // hosts in total
	since    time.Time // when the last host left
	closing  bool      // nobody is accepted

	running sync.WaitGroup // the hosts, and the HTTP server
	once    sync.Once      // of Close
}

// Options configure a Server.
type Options struct {
	Idle    time.Duration // end the run after this time without a host; 0 means never
	Version string        // of this program
	Log     *slog.Logger
}

// Suffix ends the paths that are named by the process id of a run.
const Suffix = ".run"

// Listen opens the server of this run. Without a name it is known by the process id alone. The
// caller must call Close.
func Listen(name string, opts Options) (_ *Server, err error) {
	s := &Server{Options: opts, since: time.Now(), program: process.ProgramFile()}
	if name == "" {
		s.path, err = pathOfProcess()
	} else if s.path, err = filepath.Abs(name); err == nil {
		s.lock, err = lockName(name)
	}
	if err == nil {
		err = s.listen()
	}
	if err != nil {
		s.lock.Close()
		return nil, err
	}
	if name == "" {
		return s, nil
	}
	if own, err := pathOfProcess(); err == nil && addLink(s.path, own) == nil {
		s.link = own
	}
	return s, nil
}

func lockName(name string) (*os.File, error) {
	if err := CheckPath(name); err != nil {
		return nil, err
	}
	lock, err := Lock(name + ".lock")
	if errors.Is(err, ErrLocked) {
		err = hint.With(fmt.Errorf("%s is served by a dynmcp that runs", name), "dynmcp connect --socket %s connects to it", name)
	}
	return lock, err
}

// pathOfProcess returns the path of the server of this process. What a killed run with the same
// process id has left there is removed.
func pathOfProcess() (string, error) {
	dir := Dirs()[0]
	if err := MakePrivate(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("%d%s", os.Getpid(), Suffix))
	if err := CheckPath(path); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return path, nil
}

// listen makes the path, replacing one that is left over.
func (s *Server) listen() error {
	switch info, err := os.Lstat(s.path); {
	case err == nil && !isOfRun(s.path, info):
		return fmt.Errorf("%s exists and is no socket", s.path)
	case err == nil:
		if err := os.Remove(s.path); err != nil {
			return err
		}
	}
	listener, secret, err := listenPrivately(s.path)
	if err != nil {
		return err
	}
	file, err := os.Lstat(s.path)
	if err != nil {
		listener.Close()
		return err
	}
	s.mu.Lock()
	before := s.listener
	s.listener, s.secret, s.file = listener, secret, file
	s.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	return nil
}

// Start serves requests with a handler, and hosts once Serve is called, until Close.
func (s *Server) Start(handler http.Handler) {
	ctx, cancel := context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.HandleFunc("GET "+lines.Path, s.serveHost)
	s.server = http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.admit(w, r, mux) }),
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	s.server.RegisterOnShutdown(cancel)
	s.running.Go(func() { _ = s.server.Serve(acceptor{s}) }) // until Close
}

// admit serves a request of a program that knows the secret, and proves that this is the run.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	s.mu.Lock()
	secret := s.secret
	s.mu.Unlock()
	nonce := r.Header.Get(nonceHeader)
	if !secret.proves(r.Header.Get(proofHeader), "client", nonce) {
		http.Error(w, "this needs the secret of the run", http.StatusUnauthorized)
		return
	}
	w.Header().Set(proofHeader, secret.proof("run", nonce))
	next.ServeHTTP(w, r)
}

// Close removes the paths, so that another run can use the name, ends requests, and returns when
// hosts have left.
func (s *Server) Close() {
	s.once.Do(func() {
		s.mu.Lock()
		s.refuseLocked()
		s.mu.Unlock()
		if s.link != "" {
			_ = os.Remove(s.link)
		}
		if s.isOurs() {
			_ = os.Remove(s.path)
		}
		_ = s.lock.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.server.Shutdown(ctx) != nil {
			_ = s.server.Close()
		}
		s.running.Wait()
	})
}

// refuseLocked stops accepting connections.
func (s *Server) refuseLocked() {
	s.closing = true
	_ = s.listener.Close()
}

// isOurs reports whether the file at the path is the one of this Server.
func (s *Server) isOurs() bool {
	s.mu.Lock()
	file := s.file
	s.mu.Unlock()
	there, err := os.Lstat(s.path)
	return err == nil && os.SameFile(file, there)
}

// An acceptor accepts connections of the same user, from the present listener of a Server.
type acceptor struct{ *Server }

// Accept implements net.Listener. It retries after temporary errors, such as too many open files.
func (a acceptor) Accept() (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		a.mu.Lock()
		listener, closing := a.listener, a.closing
		a.mu.Unlock()
		if closing {
			return nil, net.ErrClosed
		}
		conn, err := listener.Accept()
		switch {
		case err == nil:
			if err = CheckPeer(conn); err == nil {
				return conn, nil
			}
			conn.Close()
		case errors.Is(err, net.ErrClosed): // unless there is a new listener
			continue
		default:
			time.Sleep(pause)
		}
		a.Log.Warn("a program could not connect", "err", err)
	}
}

// Addr implements net.Listener.
func (a acceptor) Addr() net.Addr { return a.listener.Addr() }

// Close implements net.Listener.
func (a acceptor) Close() error { return a.listener.Close() }

// Serve serves hosts, each on a connection that serve closes, until ctx ends or the idle timeout
// passes. It returns when serve has returned for all of them. Nobody can connect then.
func (s *Server) Serve(ctx context.Context, serve func(context.Context, net.Conn) error) {
	s.mu.Lock()
	s.ctx, s.serve = ctx, serve
	s.mu.Unlock()
	s.Log.Info("serving", "socket", s.path)
	s.watch(ctx)
	s.Close()
}

// watchInterval is the longest interval between checks of the path.
const watchInterval = 5 * time.Second

// watch returns when ctx ends, the server is idle, or another run has taken its name. It makes the path
// again if that was removed.
func (s *Server) watch(ctx context.Context) {
	interval := watchInterval
	if s.Idle > 0 {
		interval = max(min(interval, s.Idle/4), time.Millisecond)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s.unused() {
			return
		}
		if s.isOurs() {
			continue
		}
		if s.isLockReplaced() {
			s.Log.Warn("the socket is another's now, ending when the hosts that are here have left", "socket", s.path)
			return
		}
		if err := s.listen(); err != nil {
			s.Log.Warn("the socket was removed and cannot be created again", "err", err)
		}
	}
}

// idleOfOne limits the idle timeout of a run that has served only one host.
const idleOfOne = time.Minute

// unused reports whether the run should end, because no host is connected and the idle timeout
// has passed or the program was replaced. Then it also stops accepting hosts.
func (s *Server) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Idle == 0 || s.hosts > 0 {
		return false
	}
	idle := s.Idle
	if s.served < 2 {
		idle = min(idle, idleOfOne)
	}
	if time.Since(s.since) < idle && !s.isReplaced() {
		return false
	}
	s.refuseLocked()
	return true
}

// isLockReplaced reports whether the lock file was replaced or removed.
func (s *Server) isLockReplaced() bool {
	ours, err := s.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(s.lock.Name())
	return err != nil || !os.SameFile(ours, there)
}

// isReplaced reports whether the program's file was replaced.
func (s *Server) isReplaced() bool {
	now := process.ProgramFile()
	return s.program != nil && now != nil && (!os.SameFile(s.program, now) || !s.program.ModTime().Equal(now.ModTime()))
}

// serveHost turns the connection of a request into that of a host.
func (s *Server) serveHost(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "this run takes no more hosts", http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	w.Header().Set(versionHeader, s.Version)
	conn, err := lines.Accept(w, r)
	if err != nil {
		s.Log.Debug("a host did not connect", "err", err)
		return
	}
	if err := s.serve(s.ctx, conn); err != nil {
		s.Log.Warn("a host's session ended", "err", err)
	}
}

// enter counts a host, and returns false if hosts are not served.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.serve == nil {
		return false
	}
	s.hosts++
	s.served++
	s.running.Add(1)
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts--
	s.since = time.Now()
	s.running.Done()
}
