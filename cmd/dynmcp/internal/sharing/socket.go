package sharing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/process"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Socket is the unix socket for the hosts of one user. Its run holds a lock on a file beside
// it. If nobody holds the lock, the socket is left over from a killed run.
type Socket struct {
	SocketOptions
	path    string
	lock    *os.File
	program fs.FileInfo // of this process, nil if unknown
	ready   *os.File    // receives the process id when hosts are accepted, may be nil

	mu       sync.Mutex
	listener *net.UnixListener
	file     fs.FileInfo // of the socket
	hosts    int
	served   int       // hosts in total
	since    time.Time // when the last host left
	closing  bool      // hosts are refused

	once sync.Once // of Close
}

// maxSocketPath is the limit on all systems: 104 bytes on macOS, including a final zero.
const maxSocketPath = 103

// CheckSocketPath returns an error if path is too long for a socket.
func CheckSocketPath(path string) error {
	if len(path) > maxSocketPath {
		return hint.With(fmt.Errorf("%s: the path of a socket may have %d bytes", path, maxSocketPath), "choose a shorter one with --socket")
	}
	return nil
}

// SocketOptions configure a Socket.
type SocketOptions struct {
	Idle    time.Duration // end the run after this time without a host; 0 means never
	Inherit bool          // a [Client] started this process and passes it the lock
	Version string        // of this program
	Log     *slog.Logger
}

// Listen creates the socket. The caller must call Close.
func Listen(path string, opts SocketOptions) (*Socket, error) {
	err := CheckSocketPath(path)
	if err != nil {
		return nil, err
	}
	var lock, ready *os.File
	if opts.Inherit {
		lock, ready, err = inherited(path)
	} else if lock, err = lockSocket(path); errors.Is(err, errLocked) {
		err = hint.With(fmt.Errorf("%s is served by a dynmcp that runs", path), "dynmcp connect --socket %s connects to it", path)
	}
	if err != nil {
		return nil, err
	}
	s := &Socket{SocketOptions: opts, path: path, lock: lock, ready: ready, since: time.Now(), program: process.ProgramFile()}
	if err := s.listen(); err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

// listen creates the socket file, replacing one that is left over.
func (s *Socket) listen() error {
	switch info, err := os.Lstat(s.path); {
	case err == nil && info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s exists and is no socket", s.path)
	case err == nil:
		if err := os.Remove(s.path); err != nil {
			return err
		}
	}
	listener, err := ListenPrivately(s.path)
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false) // another run may own the path by then
	file, err := os.Lstat(s.path)
	if err != nil {
		listener.Close()
		return err
	}
	s.mu.Lock()
	before := s.listener
	s.listener, s.file = listener, file
	s.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	return nil
}

// Close removes the socket, so that another run can use its path.
func (s *Socket) Close() {
	s.once.Do(func() {
		s.mu.Lock()
		s.refuseLocked()
		s.mu.Unlock()
		if s.isOurs() {
			_ = os.Remove(s.path)
		}
		_ = s.lock.Close()
	})
}

// refuseLocked stops accepting hosts.
func (s *Socket) refuseLocked() {
	s.closing = true
	_ = s.listener.Close()
}

// isOurs reports whether the file at the socket's path is the one of this Socket.
func (s *Socket) isOurs() bool {
	s.mu.Lock()
	file := s.file
	s.mu.Unlock()
	there, err := os.Lstat(s.path)
	return err == nil && os.SameFile(file, there)
}

// Serve serves hosts until ctx ends, the idle timeout passes, or a server that the run needs
// fails. Only the failure is returned as an error.
func (s *Socket) Serve(ctx context.Context, agg *aggregator.Aggregator) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	agg.StartShared()
	s.Log.Info("serving", "socket", s.path)
	if s.ready != nil {
		_, _ = fmt.Fprintln(s.ready, os.Getpid()) // the client may be gone
		_ = s.ready.Close()
	}
	var running sync.WaitGroup
	running.Go(func() { s.watch(ctx) })
	for {
		conn, err := s.accept(ctx)
		if err != nil {
			break
		}
		running.Go(func() {
			if fatal := s.serveAccepted(ctx, agg, conn); fatal != nil {
				cancel(fatal)
			}
		})
	}
	running.Wait()
	if fatal, ok := errors.AsType[*aggregator.FatalError](context.Cause(ctx)); ok {
		return fatal
	}
	return nil
}

// serveAccepted serves a host until it leaves. Only errors that end the run are returned.
func (s *Socket) serveAccepted(ctx context.Context, agg *aggregator.Aggregator, conn *net.UnixConn) error {
	defer conn.Close()
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	err := s.serveHost(ctx, agg, conn)
	if fatal, ok := errors.AsType[*aggregator.FatalError](err); ok {
		return fatal
	}
	if err != nil {
		s.Log.Warn("a host's session ended", "err", err)
	}
	return nil
}

// accept returns the next connection, or an error after the socket was closed. It retries after
// temporary errors, such as too many open files.
func (s *Socket) accept(ctx context.Context) (*net.UnixConn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		s.mu.Lock()
		listener, closing := s.listener, s.closing
		s.mu.Unlock()
		if closing {
			return nil, net.ErrClosed
		}
		conn, err := listener.AcceptUnix()
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, net.ErrClosed): // unless there is a new listener
			continue
		}
		s.Log.Warn("a host could not connect", "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// watchSocket is the longest interval between checks of a socket.
const watchSocket = 5 * time.Second

// watch closes the socket when ctx ends or the socket is idle, so that another run can use its
// path while our servers end. It creates the socket again if its file was removed.
func (s *Socket) watch(ctx context.Context) {
	interval := watchSocket
	if s.Idle > 0 {
		interval = max(min(interval, s.Idle/4), time.Millisecond)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	defer s.Close()
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
func (s *Socket) unused() bool {
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
func (s *Socket) isLockReplaced() bool {
	ours, err := s.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(s.lock.Name())
	return err != nil || !os.SameFile(ours, there)
}

// isReplaced reports whether the program's file was replaced.
func (s *Socket) isReplaced() bool {
	now := process.ProgramFile()
	return s.program != nil && now != nil && (!os.SameFile(s.program, now) || !s.program.ModTime().Equal(now.ModTime()))
}

// ready is the method of the first message on an accepted connection. It is a notification, so
// that a client that speaks MCP directly may ignore it.
const ready = "notifications/dynmcp/ready"

func (s *Socket) serveHost(ctx context.Context, agg *aggregator.Aggregator, conn *net.UnixConn) error {
	if err := CheckPeer(conn); err != nil {
		return err
	}
	if !s.enter() {
		return nil
	}
	defer s.leave()
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"version":%s,"pid":%d}}`+"\n", ready, wire.Quote(s.Version), os.Getpid())
	if _, err := conn.Write(line); err != nil {
		return nil // the host has left
	}
	return agg.ServeConn(ctx, conn)
}

// enter counts a host, and returns false if the socket is being closed.
func (s *Socket) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.hosts++
		s.served++
	}
	return !s.closing
}

func (s *Socket) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts--
	s.since = time.Now()
}
