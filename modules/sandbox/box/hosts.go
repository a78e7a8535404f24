package box

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A rule allows hosts by name or by address, on one port or on 80 and 443.
type rule struct {
	name    string // in lower case; "*." matches all names below it; "" means an address
	network netip.Prefix
	port    uint16 // 0 is 80 and 443
}

// parseRule reads a host of a policy: NAME, *.NAME, ADDRESS or NETWORK/BITS, and a port.
func parseRule(text string) (r rule, err error) {
	host, port := text, ""
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return r, fmt.Errorf("%q: the port is not a number from 1 to 65535", text)
		}
		r.port = uint16(n)
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if r.network, err = netip.ParsePrefix(host); err == nil {
		return r, nil
	}
	if address, err := netip.ParseAddr(host); err == nil {
		r.network = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		return r, nil
	}
	r.name = host
	if below := strings.TrimPrefix(host, "*."); below == "" || strings.ContainsAny(below, "*/:@ \t") {
		return r, fmt.Errorf("%q is not a host: want a name, *.name, an address or network/bits, and a port if it is not 80 or 443", text)
	}
	return r, nil
}

// CheckHost returns an error if a host of a policy is invalid.
func CheckHost(host string) error {
	_, err := parseRule(host)
	return err
}

func (r rule) hasPort(port uint16) bool {
	return r.port == port || r.port == 0 && (port == 80 || port == 443)
}

func (r rule) hasName(name string) bool {
	below, any := strings.CutPrefix(r.name, "*")
	return r.name != "" && (r.name == name || any && strings.HasSuffix(name, below) && len(name) > len(below))
}

func (r rule) hasAddress(address netip.Addr) bool {
	return r.name == "" && r.network.Contains(address)
}
