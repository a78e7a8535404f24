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
	"fmt"
	"math/big"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// An Identity is what a replica shows to others, and what it knows them by.
type Identity struct {
	certificates func() ([]*tls.Certificate, error) // the one to show first of all first
	authorities  func() (*x509.CertPool, error)
	names        []string // of the authorities of certificates, nil where there is one
}

// Keyed returns the identity of a replica that has the cluster's keys. Of each key an
// authority is made that all who have the key can make, so whoever has one of ours is
// let in: keys are replaced one replica after the other.
func Keyed(keys *seal.Keys) (*Identity, error) {
	seeds, err := keys.Derive("replica ca", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	id := &Identity{}
	pool := x509.NewCertPool()
	var certificates []*tls.Certificate
	for _, seed := range seeds {
		authority := ed25519.NewKeyFromSeed(seed)
		public := authority.Public().(ed25519.PublicKey)
		sum := sha256.Sum256(public)
		name := hex.EncodeToString(sum[:8]) + ".replica.dynmcp"
		root := &x509.Certificate{
			SerialNumber: big.NewInt(1),
			Subject:      pkix.Name{CommonName: name},
			SubjectKeyId: sum[:20],
			NotBefore:    time.Unix(0, 0), NotAfter: endOfTime,
			IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, root, root, public, authority)
		if err != nil {
			return nil, err
		}
		if root, err = x509.ParseCertificate(der); err != nil {
			return nil, err
		}
		pool.AddCert(root)
		serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
		if err != nil {
			return nil, err
		}
		own, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		leaf := &x509.Certificate{
			SerialNumber: serial,
			Subject:      pkix.Name{CommonName: "dynmcp replica"},
			DNSNames:     []string{name},
			// The key ends with the process; clocks of two machines may differ.
			NotBefore: time.Unix(0, 0), NotAfter: endOfTime,
			BasicConstraintsValid: true,
			KeyUsage:              x509.KeyUsageDigitalSignature,
			ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if der, err = x509.CreateCertificate(rand.Reader, leaf, root, own, authority); err != nil {
			return nil, err
		}
		if leaf, err = x509.ParseCertificate(der); err != nil {
			return nil, err
		}
		certificates = append(certificates, &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf})
		id.names = append(id.names, name)
	}
	id.certificates = func() ([]*tls.Certificate, error) { return certificates, nil }
	id.authorities = func() (*x509.CertPool, error) { return pool, nil }
	return id, nil
}

// endOfTime is that of certificates (RFC 5280, section 4.1.2.5).
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Files returns the identity of a replica that has a certificate in files (PEM), which
// are read for each connection: they may be replaced. Whoever has a certificate of one
// of the authorities in ca is let in, whatever its name: they have to be for this cluster alone.
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
		authorities: func() (*x509.CertPool, error) {
			text, err := regular.Read(context.Background(), ca, regular.Small)
			if err != nil {
				return nil, err
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("%s has no certificate (PEM)", ca)
			}
			return pool, nil
		},
	}
	if _, err := id.certificates(); err != nil {
		return nil, err
	}
	if _, err := id.authorities(); err != nil {
		return nil, err
	}
	return id, nil
}

// alpn is what replicas speak.
var alpn = []string{"h2"}

// server is what those who connect to us find.
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
			for i, name := range id.names { // of the authority that the client knows
				if name == hello.ServerName {
					show = certificates[i]
				}
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

// client is how we connect to others.
func (id *Identity) client() *tls.Config {
	name := "replica.dynmcp"
	if id.names != nil {
		name = id.names[0]
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: alpn,
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
			return certificates[0], nil // the other side says why not
		},
		// Replicas are known by their authority, not by a name: VerifyConnection checks it.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			authorities, err := id.authorities()
			if err != nil {
				return err
			}
			if len(state.PeerCertificates) == 0 {
				return errors.New("it shows no certificate")
			}
			between := x509.NewCertPool()
			for _, c := range state.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between})
			return err // of usage, ServerAuth is wanted
		},
	}
}
