//go:build unix && !linux && !darwin && !freebsd

package localhttp

import "errors"

// peerUser fails, so that nobody is accepted.
func peerUser(int) (int, error) { return -1, errors.New("this system is not supported") }
