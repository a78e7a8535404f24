package sharing

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

var errLocked = errors.New("locked by another process")

// Unsupported is the error of shared runs. Windows does not tell the user of the other end of a
// socket, and other users of the machine must not use the servers.
var Unsupported = errors.New("hosts cannot share a run on Windows, which does not tell the user of the other end of a socket")

func lockSocket(string) (*os.File, error) { return nil, Unsupported }

func ListenPrivately(string) (*net.UnixListener, error) { return nil, Unsupported }

func CheckPeer(*net.UnixConn) error { return Unsupported }

func CheckPrivate(string) error { return Unsupported }

func openPrivate(string) (*os.File, error) { return nil, Unsupported }

func detach(*exec.Cmd) {}

func inherited(string) (lock, ready *os.File, err error) { return nil, nil, Unsupported }

func inheritedFiles() []*os.File { return nil }
