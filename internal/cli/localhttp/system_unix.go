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
)

// hasSockets reports that paths are those of sockets.
const hasSockets = true

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

// noFollow keeps a link in a shared directory from being opened.
const noFollow = syscall.O_NOFOLLOW

// lock reports whether this process has the lock of a file now.
func lock(file *os.File) (bool, error) {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
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

// addressOf returns where the run at a path listens.
func addressOf(_ context.Context, path string) (network, address string, known secret, err error) {
	return "unix", path, "", nil
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

// checkOwner checks that nobody else can write to a directory.
func checkOwner(dir string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(stat.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode()&(fs.ModePerm&^0o700) != 0:
		return fmt.Errorf("%s is open to other users (%v)", dir, info.Mode())
	}
	return nil
}

// OpenLog truncates or creates a file that only its owner can read.
func OpenLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}

// Detach starts a command in a new session, so that it outlives this process and gets no signals
// to its group.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
