package internode

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"math/big"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// An Identity holds the certificates that a replica presents, and the authorities that it trusts.
type Identity struct {
	certificates func() ([]*tls.Certificate, error) // the preferred one first
	authorities  func() (*x509.CertPool, error)
	names        []string // of the authorities, in the order of certificates; nil for Files
}

// Keyed returns the identity of a replica that has the cluster's keys. All replicas derive the
// same authority from a key. A holder of any of the keys is trusted, so that keys can be
// replaced on one replica after the other.
func Keyed(keys *seal.Keys) (*Identity, error) {
	seeds, err := keys.Derive("replica ca", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	id := &Identity{}
	pool := x509.NewCertPool()
	var certificates []*tls.Certificate
	for _, seed := range seeds {
		key := ed25519.NewKeyFromSeed(seed)
		sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
		name := hex.EncodeToString(sum[:8]) + ".replica.dynmcp"
		authority := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, SubjectKeyId: sum[:20],
			IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		}
		if authority, err = certify(authority, authority, key.Public(), key); err != nil {
			return nil, err
		}
		pool.AddCert(authority)
		certificate, err := newCertificate(name, authority, key)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, certificate)
		id.names = append(id.names, name)
	}
	id.certificates = func() ([]*tls.Certificate, error) { return certificates, nil }
	id.authorities = func() (*x509.CertPool, error) { return pool, nil }
	return id, nil
}

// newCertificate returns a certificate signed by an authority. Its key exists only in this
// process.
func newCertificate(name string, authority *x509.Certificate, authorityKey ed25519.PrivateKey) (*tls.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := certify(&x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "dynmcp replica"}, DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, public, authorityKey)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// certify signs a certificate without expiry: the clocks of two machines may differ.
func certify(template, parent *x509.Certificate, public any, key ed25519.PrivateKey) (*x509.Certificate, error) {
	template.NotBefore, template.NotAfter, template.BasicConstraintsValid = time.Unix(0, 0), endOfTime, true
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// endOfTime means no expiry in certificates (RFC 5280, section 4.1.2.5).
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Files returns the identity of a replica whose certificate is in files (PEM). They are read for
// each connection, so they may be replaced. A holder of any certificate of the authorities in
// ca is trusted, so these authorities must be used for this cluster only.
func Files(cert, key, ca string) (*Identity, error) {
	id := &Identity{
		certificates: func() ([]*tls.Certificate, error) {
			certText, err := regular.Read(context.Background(), cert, regular.Small)
			if err != nil {
				return nil, err
			}
			keyText, err := regular.Read(context.Background(), key, regular.Small)
			if err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(certText, keyText)
			return []*tls.Certificate{&pair}, err
		},
		authorities: func() (*x509.CertPool, error) { return regular.CertPool(ca) },
	}
	_, err := id.certificates()
	if err == nil {
		_, err = id.authorities()
	}
	if err != nil {
		return nil, err
	}
	return id, nil
}

// alpn are the protocols that TLS negotiates.
var alpn = []string{"h2", "http/1.1"}

// server returns the configuration of a listener.
func (id *Identity) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: alpn,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			certificates, err := id.certificates()
			if err != nil {
				return nil, err
			}
			authorities, err := id.authorities()
			if err != nil {
				return nil, err
			}
			show := certificates[0]
			if i := slices.Index(id.names, hello.ServerName); i >= 0 { // the authority that the client knows
				show = certificates[i]
			}
			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				NextProtos:   alpn,
				Certificates: []tls.Certificate{*show},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    authorities,
			}, nil
		},
	}
}

// client returns the configuration of connections to others, for a protocol.
func (id *Identity) client(protocol string) *tls.Config {
	name := "replica.dynmcp"
	if id.names != nil {
		name = id.names[0]
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{protocol},
		ServerName: name,
		GetClientCertificate: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificates, err := id.certificates()
			if err != nil {
				return nil, err
			}
			for _, c := range certificates {
				if asked.SupportsCertificate(c) == nil {
					return c, nil
				}
			}
			return certificates[0], nil // the other side refuses it and says why
		},
		// Replicas are known by their authority, not by a name: VerifyConnection checks it.
		InsecureSkipVerify: true,
		VerifyConnection:   id.verify,
	}
}

// verify checks that a server's certificate was issued by one of the authorities.
func (id *Identity) verify(state tls.ConnectionState) error {
	authorities, err := id.authorities()
	if err != nil {
		return err
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("it shows no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: intermediates})
	return err
}
