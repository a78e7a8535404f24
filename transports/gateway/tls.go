package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
)

const (
	// checkEvery is how often the files of a certificate are read.
	checkEvery = 10 * time.Second
	// maxCheck limits how long the handshake that reads them is delayed.
	maxCheck = 2 * time.Second
)

// A certificate is read from files, and read again when they have changed, because
// certificates are renewed every few weeks.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	of      [2][]byte // the contents of the files that current is from
	due     time.Time // when the files are read again
	failed  string    // the last error of reading them, which is logged once
}

// TLS returns a configuration with the certificate from two PEM files, which are read again
// every 10 seconds. If they become unreadable, the last certificate stays and the log says so.
func TLS(ctx context.Context, cert, key string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{cert: cert, key: key, log: log, due: time.Now().Add(checkEvery)}
	var err error
	if c.current, c.of, err = c.read(ctx); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.get(hello.Context(), time.Now()), nil
	}}, nil
}

// get returns the certificate. One handshake in each interval reads the files first; the
// others do not wait for it.
func (c *certificate) get(ctx context.Context, now time.Time) *tls.Certificate {
	c.mu.Lock()
	current, due := c.current, !now.Before(c.due)
	if due {
		c.due = now.Add(checkEvery)
	}
	c.mu.Unlock()
	if !due {
		return current
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCheck)
	defer cancel()
	read, of, err := c.read(ctx)
	return c.renew(read, of, err)
}

// renew replaces the certificate if the files were read without an error and have changed.
func (c *certificate) renew(read *tls.Certificate, of [2][]byte, err error) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := ""
	switch {
	case err != nil:
		if failed = err.Error(); failed != c.failed {
			c.log.Warn("the certificate cannot be read again, the last one is kept", "err", err)
		}
	case !bytes.Equal(of[0], c.of[0]) || !bytes.Equal(of[1], c.of[1]):
		c.current, c.of = read, of
		c.log.Info("the certificate was read again", "file", c.cert)
	}
	c.failed = failed
	return c.current
}

func (c *certificate) read(ctx context.Context) (read *tls.Certificate, of [2][]byte, err error) {
	for i, name := range []string{c.cert, c.key} {
		if of[i], _, err = regular.ReadOrPipe(ctx, name, regular.Small); err != nil {
			return nil, of, err
		}
	}
	pair, err := tls.X509KeyPair(of[0], of[1])
	return &pair, of, err
}
