//go:build unix

package sharing

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
)

// Unsupported is the error of systems without shared runs; here it is nil.
var Unsupported error

// errLocked means that another process serves a socket, or is about to.
var errLocked = errors.New("locked by another process")

// lockSocket locks the lock file of a socket. The system releases the lock when the process ends.
// The file is never removed, because old and new holders would lock different files.
func lockSocket(path string) (*os.File, error) {
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("%s: %w", path+".lock", err)
	}
	return file, nil
}

// ListenPrivately creates a socket that only its owner may connect to. It sets the umask of the
// process for a moment, so that the socket never has other permissions.
func ListenPrivately(path string) (*net.UnixListener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

// CheckPeer checks that the other end of a connection belongs to the same user.
func CheckPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
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

// openPrivate truncates or creates a file that only its owner can read.
func openPrivate(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}

// detach starts a command in a new session, so that it outlives this process and gets no signals
// to its group.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// inherited returns the files that startShared passes to a run: the lock of its socket, and the
// pipe on which the run reports that it accepts hosts.
func inherited(path string) (lock, ready *os.File, err error) {
	lock, ready = os.NewFile(3, path+".lock"), os.NewFile(4, "ready")
	if lock == nil || ready == nil {
		return nil, nil, errors.New("--inherit is for dynmcp connect")
	}
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	given, err1 := lock.Stat()
	named, err2 := os.Lstat(lock.Name())
	if err1 != nil || err2 != nil || !os.SameFile(given, named) {
		return nil, nil, errors.New("--inherit is for dynmcp connect")
	}
	return lock, ready, nil
}

// inheritedFiles returns the files of inherited, to pass them on to another process.
func inheritedFiles() []*os.File { return []*os.File{os.NewFile(3, "lock"), os.NewFile(4, "ready")} }
