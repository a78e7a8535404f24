//go:build unix

package host

import (
	"io"
	"os"
	"runtime"
	"syscall"
)

// Std returns the streams on which a host reaches this process, and a function
// that leaves them as they were. From here on os.Stdout is stderr: a stray
// print must not end up in the protocol.
//
// An output that is a pipe or a socket is made not to block, so that a write can
// have a deadline and need not wake another goroutine; files and terminals stay
// as they are: others may share them. The input stays as it is, too. A thread that
// waits in read is woken by what comes, where the poller would have to wake it:
// that is a fifth of the time of a call.
func Std() (in io.Reader, out io.Writer, restore func()) {
	stdout, block := unblocked(os.Stdout)
	os.Stdout = os.Stderr
	return os.Stdin, stdout, block
}

func unblocked(file *os.File) (*os.File, func()) {
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return file, func() {}
	}
	fd := int(file.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return file, func() {}
	}
	return os.NewFile(uintptr(fd), file.Name()), func() {
		_ = syscall.SetNonblock(fd, false)
		runtime.KeepAlive(file) // collecting it would close the descriptor
	}
}
