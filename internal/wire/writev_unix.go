//go:build unix && !linux

package wire

import "golang.org/x/sys/unix"

func writev(fd int, parts [][]byte) (n int, err error) {
	for _, part := range parts {
		more, err := unix.Write(fd, part)
		n += max(more, 0)
		if err != nil || more < len(part) {
			break
		}
	}
	return n, nil
}
