package hint

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Plain returns the text of an error as a person reads it, and a hint, "" if there is none. It has
// words of its own for a file that cannot be opened or replaced, and for an address that cannot be
// listened on, in place of the system call.
func Plain(err error) (text, hint string) {
	text = err.Error()
	var cause error
	var says string
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "listen" && e.Addr != nil {
		cause = e
		says, hint = listening(e.Addr.String(), e.Err)
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		cause = e
		says, hint = opening(e.New, e.Err)
	} else if e, ok := errors.AsType[*fs.PathError](err); ok && e.Op != "fork/exec" && e.Op != "chdir" {
		cause = e
		says, hint = opening(e.Path, e.Err)
	}
	if cause == nil || !strings.Contains(text, cause.Error()) { // it has words of its own
		hint = ""
	} else {
		text = strings.Replace(text, cause.Error(), says, 1)
	}
	if with, ok := errors.AsType[*Error](err); ok {
		hint = with.Hint
	}
	return text, hint
}

// Windows has its own number for an address in use, which is none of the other systems.
const windowsInUse = syscall.Errno(10048)

// InUse reports whether an address cannot be listened on because another program does.
func InUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windowsInUse)
}

func listening(address string, err error) (says, advice string) {
	switch {
	case InUse(err):
		return "the address " + address + " is in use by another program", "take another port, or 0 for any that is free"
	case errors.Is(err, fs.ErrPermission):
		return "listening on " + address + " is not permitted", "take a port above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no address " + address, "127.0.0.1 is this machine alone, 0.0.0.0 all its addresses"
	}
	return "cannot listen on " + address + ": " + err.Error(), ""
}

func opening(path string, err error) (says, advice string) {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(dir); err != nil {
			return "there is no directory " + dir, "make it, or name another path"
		}
		if filepath.IsAbs(path) {
			return "there is no file " + path, "check the path"
		}
		here, _ := os.Getwd()
		return "there is no file " + path, "check the path: it is relative to " + here
	case errors.Is(err, fs.ErrPermission):
		return path + " may not be opened or replaced by this user", "check who owns it and " + dir + ", and whether they are write-protected"
	}
	return path + ": " + err.Error(), ""
}
