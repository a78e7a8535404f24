//go:build darwin || freebsd

package localhttp

import "golang.org/x/sys/unix"

// peerUser returns the user of the process at the other end of a unix socket.
func peerUser(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
