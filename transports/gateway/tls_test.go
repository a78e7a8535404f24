package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a new certificate for localhost and its key.
func writeCertificate(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// servedAt returns the serial number of the certificate that a host gets at a time.
func servedAt(t *testing.T, c *certificate, at time.Time) int64 {
	t.Helper()
	leaf, err := x509.ParseCertificate(c.get(t.Context(), at).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.Int64()
}

func TestACertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	var logged strings.Builder
	c := &certificate{cert: cert, key: key, log: slog.New(slog.NewTextHandler(&logged, nil))}
	now := time.Now()
	if got := servedAt(t, c, now); got != 1 {
		t.Errorf("got %d", got)
	}
	writeCertificate(t, cert, key, 2)
	if got := servedAt(t, c, now.Add(checkEvery/2)); got != 1 {
		t.Errorf("the files are read before they are due: got %d", got)
	}
	if got := servedAt(t, c, now.Add(checkEvery)); got != 2 {
		t.Errorf("the new certificate is not used: got %d", got)
	}
	if err := os.WriteFile(cert, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if got := servedAt(t, c, now.Add(time.Duration(2+i)*checkEvery)); got != 2 {
			t.Errorf("after an invalid certificate: got %d", got)
		}
	}
	if n := strings.Count(logged.String(), "the certificate cannot be read again"); n != 1 {
		t.Errorf("it is logged %d times, want once:\n%s", n, logged.String())
	}
	if _, err := TLS(t.Context(), cert, key, c.log); err == nil {
		t.Error("an invalid certificate is accepted at the start")
	}
}
