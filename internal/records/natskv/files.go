package natskv

import (
	"context"
	"crypto/x509"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// credentials replaces nats.UserCredentials, which would read any kind of file of that name when
// the connection is made again.
func credentials(path string) nats.Option {
	read := func() ([]byte, error) { return regular.Read(context.Background(), path, regular.Small) }
	return nats.UserJWT(func() (string, error) {
		text, err := read()
		if err != nil {
			return "", err
		}
		return nkeys.ParseDecoratedJWT(text)
	}, func(nonce []byte) ([]byte, error) {
		text, err := read()
		if err != nil {
			return nil, err
		}
		pair, err := nkeys.ParseDecoratedNKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		defer pair.Wipe()
		return pair.Sign(nonce)
	})
}

// authorities replaces nats.RootCAs for the same reason.
func authorities(path string) nats.Option {
	return nats.ClientTLSConfig(nil, func() (*x509.CertPool, error) { return regular.CertPool(path) })
}
