package host

import (
	"io"
	"os"
)

// Std returns the streams on which a host reaches this process. Afterwards os.Stdout is
// stderr: a stray print must not end up in the protocol.
func Std() (in io.Reader, out io.Writer, restore func()) {
	out = os.Stdout
	os.Stdout = os.Stderr
	return os.Stdin, out, func() {}
}
