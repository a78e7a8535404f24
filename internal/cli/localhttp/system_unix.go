//go:build unix

package localhttp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
)

// hasSockets reports that paths are those of sockets.
const hasSockets = true

// ErrLocked means that another process serves a name, or is about to.
var ErrLocked = errors.New("locked by another process")

// Dirs returns the directories that may contain runs of this user: first the one for new ones, last
// the one that hosts without XDG_RUNTIME_DIR use.
func Dirs() []string {
	known := filepath.Join(os.TempDir(), fmt.Sprintf("dynmcp-%d", os.Getuid()))
	if system := fmt.Sprintf("/run/user/%d", os.Getuid()); CheckPrivate(system) == nil {
		known = filepath.Join(system, "dynmcp")
	}
	own := os.Getenv("XDG_RUNTIME_DIR")
	if own = filepath.Join(own, "dynmcp"); !filepath.IsAbs(own) || own == known {
		return []string{known}
	}
	return []string{own, known}
}

// Lock locks a file. The system releases the lock when the process ends. The file is never removed,
// because old and new holders would lock different files.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// listenPrivately creates a socket that only its owner may connect to. It sets the umask of the
// process for a moment, so that the socket never has other permissions.
func listenPrivately(path string) (net.Listener, secret, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, "", err
	}
	listener.SetUnlinkOnClose(false) // another run may own the path by then
	return listener, "", nil
}

// isOfRun reports whether a file may be what a run has left.
func isOfRun(_ string, info fs.FileInfo) bool { return info.Mode()&(fs.ModeSocket|fs.ModeSymlink) != 0 }

func addLink(path, link string) error { return os.Symlink(path, link) }

func dial(ctx context.Context, path string) (net.Conn, secret, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case isRefused(err), errors.Is(err, syscall.EAGAIN), errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("%w: %w", ErrAbsent, err)
	case err != nil:
		return nil, "", err
	}
	if err := CheckPeer(conn); err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, "", nil
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

// CheckPeer checks that the other end of a connection belongs to the same user.
func CheckPeer(conn net.Conn) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("not a unix socket but %T", conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	uid := -1
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = peerUser(int(fd)) }); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return fmt.Errorf("cannot tell the user of the other end of the socket: %w", failed)
	case uid != os.Getuid():
		return fmt.Errorf("the other end of the socket belongs to another user (uid %d)", uid)
	}
	return nil
}

// CheckPrivate checks that nobody else can write to a directory.
func CheckPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		err = fmt.Errorf("%s is not a directory", dir)
	case !ok || int(stat.Uid) != os.Getuid():
		err = fmt.Errorf("%s belongs to another user", dir)
	case info.Mode()&(fs.ModePerm&^0o700) != 0:
		err = fmt.Errorf("%s is open to other users (%v)", dir, info.Mode())
	default:
		return nil
	}
	return hint.With(err, "name a socket in a directory of your own with --socket")
}

// OpenLog truncates or creates a file that only its owner can read.
func OpenLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}

// Detach starts a command in a new session, so that it outlives this process and gets no signals
// to its group.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
