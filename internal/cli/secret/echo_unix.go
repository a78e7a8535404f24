//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package secret

import "golang.org/x/sys/unix"

// echoOff switches off the echo of a terminal. Typed input that is not read yet is kept.
func echoOff(terminal int) error {
	state, err := unix.IoctlGetTermios(terminal, getTermios)
	if err != nil {
		return err
	}
	state.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(terminal, setTermios, state)
}
