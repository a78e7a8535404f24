package gateway

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// minConnections is how many connections there may be at once, and more where a
// config allows many event streams.
const minConnections = 4096

// Connections returns how many connections a gateway takes at once that has so many
// event streams for each server.
func Connections(streams int) int { return max(minConnections, 4*streams) }

// Listen opens the address that hosts reach the gateway at. One that others than
// this machine reach takes public, and a token: an open port is found. No more than
// connections are taken at once, nor more than half the descriptors that there may
// be: those who only connect must not use up what servers are started and reached with.
// Who comes then takes the place of one that has shown no token.
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

// A listener leaves nobody behind whose connection was made: those would find it reset.
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

// Close implements net.Listener. Somebody has to accept meanwhile.
func (l *listener) Close() error {
	refuseNew(l.Listener)
	return l.Listener.Close()
}

// A PublicError says that an address is not only for this machine.
type PublicError struct{ Address string }

func (e *PublicError) Error() string {
	return fmt.Sprintf("%s is reached by other machines, not only by this one", e.Address)
}
