// Package certs has the certificates that connections to remote servers need: authorities of a
// company, and those of clients.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// Config returns the configuration of connections to a server. The authorities of its entry are
// trusted besides those of the system; the client's certificate is read for each connection, so
// that a new one is used.
func Config(entry schema.TLS) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if entry.CA != "" {
		text, err := read(entry.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool()
		}
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls.ca: %s has no certificate in PEM", entry.CA)
		}
	}
	if entry.Cert == "" {
		return config, nil
	}
	if _, err := pair(entry); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair(entry) }
	return config, nil
}

func pair(entry schema.TLS) (*tls.Certificate, error) {
	cert, err1 := read(entry.Cert)
	key, err2 := read(entry.Key)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
	}
	found, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
	}
	return &found, nil
}

func read(path string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(home, rest)
	}
	return regular.Read(context.Background(), path, regular.Small)
}

// Hint returns what answers the error of a connection, "" if its certificates are not the reason.
func Hint(err error) string {
	var remote *net.OpError // of crypto/tls, if the server sent an alert
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return `if the server is yours, name the file of its authority's certificate as "ca" in "tls" of its entry`
	case errors.As(err, new(x509.HostnameError)):
		return "its certificate is that of another host: correct its url; no key of the entry allows that"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its operator has to renew its certificate, if the clock of this machine is right; no key of the entry allows that"
	case errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "certificate"):
		return `it does not accept the client's certificate, or the lack of one: name its files as "cert" and "key" in "tls" of the entry`
	case errors.As(err, new(tls.RecordHeaderError)), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "it does not speak TLS at this port: write http:// in its url, or another port"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "its operator has to correct its certificate; no key of the entry allows that"
	}
	return ""
}
