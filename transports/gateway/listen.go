package gateway

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// minConnections is the least limit of connections.
const minConnections = 4096

// Connections returns the limit of connections for a gateway with this limit of event streams
// for each server.
func Connections(streams int) int { return max(minConnections, 4*streams) }

// Listen listens on an address. An address that other machines reach requires public, and
// protected, which means that the gateway requires a token: open ports are found.
//
// connections limits the connections at once. They also use at most half of the file
// descriptors of the process, because starting and reaching servers needs some. At the limit
// a new connection replaces one without an authenticated request.
func Listen(address string, public, protected bool, connections int) (net.Listener, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address %q is not HOST:PORT: %w", address, err)
	}
	ip := net.ParseIP(name)
	local := strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
	switch {
	case local:
	case !public:
		return nil, &PublicError{Address: address}
	case !protected:
		return nil, errors.New("an address that other machines reach needs a token: --token, or gateway.token in the config")
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &listener{ln, newConns(min(connections, descriptors()/2))}, nil
}

// A listener limits connections. Its Close lets the established ones be accepted first,
// because the system would reset them.
type listener struct {
	net.Listener
	conns *conns
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.conns.add(c), nil
}

// Close implements net.Listener. Accept must be called meanwhile.
func (l *listener) Close() error {
	refuseConnections(l.Listener)
	return l.Listener.Close()
}

// A PublicError means that other machines reach an address, which Listen was not told to allow.
type PublicError struct{ Address string }

func (e *PublicError) Error() string {
	return fmt.Sprintf("other machines can reach %s", e.Address)
}
