package transports

import (
	"crypto/tls"
	"errors"
	"net"
)

// neverSent reports whether an HTTP error means that nothing ran: the name, the
// connection or the TLS handshake failed, or the answer was to go elsewhere.
func neverSent(err error) bool {
	if errors.Is(err, errRedirect) {
		return true
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &dns) || errors.As(err, &cert)
}
