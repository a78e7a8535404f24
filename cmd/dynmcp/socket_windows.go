package main

import (
	"errors"
	"net"
	"os"
)

var errLocked = errors.New("locked by another process")

// errNoSocket says why there are no sockets: Windows has them, but does not say whose
// the other end is, and what a server can do is not for every user of the machine.
var errNoSocket = errors.New("--socket is not available on Windows, which does not say whose the other end of a socket is")

func lockSocket(string) (*os.File, error) { return nil, errNoSocket }

func listenPrivately(string) (*net.UnixListener, error) { return nil, errNoSocket }

func checkPeer(*net.UnixConn) error { return errNoSocket }
