package gateway

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkEvery is how often the files of a certificate are looked at.
const checkEvery = 10 * time.Second

// A certificate is read from files, and again when they have changed: one is renewed
// every few weeks, and the gateway runs on.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	of      [2]time.Time // when the files had changed that it was read from
	checked time.Time
}

// TLS returns a configuration with the certificate of two PEM files. Files that
// cannot be read any more change nothing but the log.
func TLS(cert, key string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	c.checked = time.Now()
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.get(time.Now()), nil
	}}, nil
}

func (c *certificate) get(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) >= checkEvery {
		c.checked = now
		if c.changes() != c.of {
			if err := c.read(); err != nil {
				c.log.Warn("the certificate is not read again", "err", err)
			} else {
				c.log.Info("the certificate was read again", "file", c.cert)
			}
		}
	}
	return c.current
}

func (c *certificate) changes() (of [2]time.Time) {
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			of[i] = info.ModTime()
		}
	}
	return of
}

func (c *certificate) read() error {
	of := c.changes()
	read, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current, c.of = &read, of
	return nil
}
