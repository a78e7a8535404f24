package internode

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/transports"
)

// asked are the routes that these tests serve. The result is the name of the principal.
var asked = Routes{
	Result: func(_ context.Context, principal, handle string) (json.RawMessage, int, bool) {
		return fmt.Appendf(nil, "%q", principal), 7, handle == "h/1"
	},
	Requests: func(w http.ResponseWriter, _ *http.Request, _ string) {},
}

func TestResultOfAnotherReplica(t *testing.T) {
	identity := keyed(t, keys(t, secret(1)))
	address := serve(t, identity, asked).Addr().String()
	client := newClient(t, identity, "a")
	if result, limit, ok := client.Result(t.Context(), address, "me & you", "h/1"); !ok || limit != 7 || string(result) != `"me & you"` {
		t.Errorf("got %s, %d, %t", result, limit, ok)
	}
	if _, _, ok := client.Result(t.Context(), address, "me", "another"); ok {
		t.Error("got a result that was never stored")
	}
	// A release without the route answers that it is unsupported, not that the call failed.
	if _, err := client.Open(t.Context(), address, "x", ""); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// reach makes a request with an identity.
func reach(t *testing.T, identity *Identity, address string) error {
	t.Helper()
	resp, err := newClient(t, identity, "a").Request(address, "").RoundTrip(small(t))
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func TestKeysAreReplacedOneReplicaAfterTheOther(t *testing.T) {
	t.Parallel()
	older, newer := secret(1), secret(2)
	for what, c := range map[string]struct {
		here, there [][]byte
		ok          bool
	}{
		"the same":              {[][]byte{older}, [][]byte{older}, true},
		"the new one added":     {[][]byte{older}, [][]byte{older, newer}, true},
		"the new one first":     {[][]byte{older}, [][]byte{newer, older}, true},
		"both, in other orders": {[][]byte{older, newer}, [][]byte{newer, older}, true},
		"the old one gone":      {[][]byte{newer, older}, [][]byte{newer}, true},
		"none in common":        {[][]byte{older}, [][]byte{newer}, false},
	} {
		t.Run(what, func(t *testing.T) {
			here, there := keyed(t, keys(t, c.here...)), keyed(t, keys(t, c.there...))
			for _, pair := range [][2]*Identity{{here, there}, {there, here}} {
				address := serve(t, pair[1], asked).Addr().String()
				err := reach(t, pair[0], address)
				if (err == nil) != c.ok {
					t.Errorf("got %v", err)
				}
				var failure *transports.Failure
				if !c.ok && (!errors.As(err, &failure) || failure.Outcome != transports.NotSent) {
					t.Errorf("got %v, want a failure with the outcome not_sent", err)
				}
			}
		})
	}
}

// A client without a certificate of the cluster reaches no route, even if it accepts the
// server's certificate.
func TestClientWithoutCertificateIsRefused(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 9)
	opts := Routes{Requests: func(w http.ResponseWriter, r *http.Request, _ string) { reached <- r.URL.Path }}
	address := serve(t, keyed(t, keys(t, secret(1))), opts).Addr().String()
	foreign := keyed(t, keys(t, secret(9))).client("h2")
	foreign.VerifyConnection = nil
	old := keyed(t, keys(t, secret(1))).client("h2")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for what, config := range map[string]*tls.Config{
		"no certificate":        {InsecureSkipVerify: true, NextProtos: []string{"h2"}},
		"one of another key":    foreign,
		"one of ours, TLS 1.2":  old,
		"HTTP without a secret": nil,
	} {
		var protocols http.Protocols
		protocols.SetHTTP2(true)
		scheme := "https"
		if config == nil {
			protocols.SetHTTP1(true)
			scheme = "http"
		}
		transport := &http.Transport{TLSClientConfig: config, Protocols: &protocols}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+address+"/request/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := transport.RoundTrip(r); err == nil {
			resp.Body.Close()
			if resp.StatusCode < 400 {
				t.Errorf("%s: got %s", what, resp.Status)
			}
		}
		transport.CloseIdleConnections()
	}
	select {
	case path := <-reached:
		t.Errorf("%s was reached", path)
	default:
	}
}

// The files of certificates may be replaced while replicas run.
func TestCertificatesInFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
	if _, err := Files(cert, key, ca); err == nil {
		t.Error("missing files: no error")
	}
	newFiles(t, cert, key, ca)
	identity, err := Files(cert, key, ca)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id *Identity) error {
		address := serve(t, identity, asked).Addr().String()
		return reach(t, id, address)
	}
	if err := ask(identity); err != nil {
		t.Errorf("got %v", err)
	}
	if err := ask(keyed(t, keys(t, secret(1)))); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
	newFiles(t, cert, key, ca)
	if err := ask(identity); err != nil {
		t.Errorf("with new files: %v", err)
	}
}

// newFiles writes a new authority, a certificate signed by it, and the certificate's key.
func newFiles(t *testing.T, cert, key, ca string) {
	t.Helper()
	write := func(name, kind string, der []byte) {
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "replica"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter, DNSNames: []string{"replica"}}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, authority.Public(), authority)
	if err != nil {
		t.Fatal(err)
	}
	write(ca, "CERTIFICATE", der)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if der, err = x509.CreateCertificate(rand.Reader, leaf, root, own.Public(), authority); err != nil {
		t.Fatal(err)
	}
	write(cert, "CERTIFICATE", der)
	if der, err = x509.MarshalPKCS8PrivateKey(own); err != nil {
		t.Fatal(err)
	}
	write(key, "PRIVATE KEY", der)
}
