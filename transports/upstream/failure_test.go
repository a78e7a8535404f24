package upstream

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// An error of dialling for lack of our own resources is told from other errors.
func TestLackOfResourcesAtDialling(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other error numbers, which are tested in package guard")
	}
	dial := func(op string, errno syscall.Errno) error {
		return notSentError{&net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError("socket", errno)}}
	}
	l := newHTTPLink(newConn(schema.Server{Name: "up", URL: "http://up.example", Transport: schema.StreamableHTTP}, ConnOptions{}))
	for _, test := range []struct {
		err  error
		hint string // "" is another failure
	}{
		{dial("dial", syscall.EMFILE), "raise the limit on open files"},
		{dial("dial", syscall.ENOMEM), "free some memory"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "dial udp 192.0.2.1:53: socket: " + syscall.EMFILE.Error(), Name: "up.example"}}, "raise the limit on open files"},
		{dial("dial", syscall.ECONNREFUSED), ""},
		{dial("read", syscall.ENOMEM), ""},
		{io.ErrUnexpectedEOF, ""},
	} {
		var f *transports.Failure
		if !errors.As(l.requestFailure(test.err), &f) {
			t.Fatalf("%v: no failure", test.err)
		}
		lack := f.Code == transports.CodeNoResources && f.Outcome == transports.NotSent
		if lack != (test.hint != "") || !strings.HasPrefix(f.Hint, test.hint) || lack != strings.Contains(f.Error(), "dynmcp is out of system resources") {
			t.Errorf("%v: got %d, %s", test.err, f.Code, f.Text())
		}
	}
}
