package hint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, below := filepath.Join(dir, "a.json"), filepath.Join(dir, "none", "a.json")
	listen := func(err error) error {
		return &net.OpError{Op: "listen", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, Err: os.NewSyscallError("bind", err)}
	}
	missing := &fs.PathError{Op: "stat", Path: file, Err: syscall.ENOENT}
	for _, test := range []struct {
		err        error
		text, hint string // hint is a part
	}{
		{missing, "there is no file " + file, "check the path"},
		{fmt.Errorf("read the script: %w", missing), "read the script: there is no file " + file, "check the path"},
		{&fs.PathError{Op: "open", Path: "a.json", Err: syscall.ENOENT}, "there is no file a.json", "it is relative to "},
		{&fs.PathError{Op: "open", Path: below, Err: syscall.ENOENT}, "there is no directory " + filepath.Dir(below), "make it"},
		{&os.LinkError{Op: "rename", Old: "x", New: file, Err: syscall.EPERM}, file + " may not be opened or replaced by this user", "who owns it and " + dir},
		{&fs.PathError{Op: "write", Path: file, Err: errors.New("it is full")}, file + ": it is full", ""},
		{listen(syscall.EADDRINUSE), "the address 127.0.0.1:80 is in use by another program", "another port"},
		{listen(syscall.EACCES), "listening on 127.0.0.1:80 is not permitted", "above 1023"},
		{listen(syscall.EADDRNOTAVAIL), "this machine has no address 127.0.0.1:80", "127.0.0.1 is this machine"},
		{hint.With(missing, "its own"), "there is no file " + file, "its own"},
		{other{missing}, "other words", ""},
		{errors.New("x"), "x", ""},
		{&fs.PathError{Op: "fork/exec", Path: file, Err: syscall.ENOENT}, "fork/exec " + file + ": " + syscall.ENOENT.Error(), ""},
	} {
		text, advice := hint.Plain(test.err)
		if text != test.text || !strings.Contains(advice, test.hint) || test.hint == "" && advice != "" {
			t.Errorf("%v: got %q, hint %q", test.err, text, advice)
		}
	}
}

type other struct{ error }

func (other) Error() string   { return "other words" }
func (o other) Unwrap() error { return o.error }
