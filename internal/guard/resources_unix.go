//go:build unix

package guard

import "syscall"

var shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM}
