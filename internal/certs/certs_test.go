package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

// files writes a new certificate and its key, and returns their paths.
func files(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err1 := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	secret, err2 := x509.MarshalPKCS8PrivateKey(private)
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	err3 := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	err4 := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// A server of a company's own authority is reached with that authority and a certificate of the
// client, the last one in its file. Without one of them the error names what answers it.
func TestConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var seen string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.TLS.PeerCertificates[0].Subject.CommonName }))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := files(t, dir, "client")
	ask := func(entry schema.TLS) error {
		config, err := Config(entry)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		resp, err := client.Get(server.URL)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := ask(schema.TLS{}); !strings.Contains(Hint(err), `"ca" in "tls"`) {
		t.Errorf("without an authority: %v, %q", err, Hint(err))
	}
	if err := ask(schema.TLS{CA: ca}); !strings.Contains(Hint(err), `"cert" and "key" in "tls"`) {
		t.Errorf("without a certificate: %v, %q", err, Hint(err))
	}
	for _, name := range []string{"client", "renewed"} {
		if name == "renewed" {
			newer, newKey := files(t, dir, name)
			if os.Rename(newer, cert) != nil || os.Rename(newKey, key) != nil {
				t.Fatal("rename")
			}
		}
		if err := ask(schema.TLS{CA: ca, Cert: cert, Key: key}); err != nil || seen != name {
			t.Errorf("got %v, the server saw %q, want %q", err, seen, name)
		}
	}
}

// Files that cannot be used are named with their key of the entry, and nothing of them is shown.
func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := files(t, dir, "one")
	_, other := files(t, dir, "two")
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("s3cret text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, entry := range map[string]schema.TLS{
		"tls.ca: stat " + dir + "/none":             {CA: dir + "/none"},
		"tls.ca: " + text + " has no certificate":   {CA: text},
		"tls.cert and tls.key: stat " + dir:         {Cert: cert, Key: dir + "/none"},
		"tls.cert and tls.key: tls: private key":    {Cert: cert, Key: other},
		"tls.cert and tls.key: tls: failed to find": {Cert: key, Key: cert},
	} {
		if _, err := Config(entry); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if hint := Hint(io.EOF); hint != "" {
		t.Errorf("a hint for another error: %q", hint)
	}
}
