//go:build unix

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errLocked says that another process serves on a socket, or is about to.
var errLocked = errors.New("locked by another process")

// lockSocket takes the lock of a socket's path, which ends with the process, whatever
// ends that. The file stays: to remove it would part those who hold it from those who
// come.
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

// listenPrivately makes a socket that only its owner may connect to, from the first
// moment on: the mask holds for the whole process, but for no longer than that takes.
func listenPrivately(path string) (*net.UnixListener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

// checkPeer makes sure that the other end of a connection is the same user's.
func checkPeer(conn *net.UnixConn) error {
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
		return fmt.Errorf("whose the other end of the socket is cannot be told: %w", failed)
	case uid != os.Getuid():
		return fmt.Errorf("the other end of the socket belongs to another user (uid %d)", uid)
	}
	return nil
}
