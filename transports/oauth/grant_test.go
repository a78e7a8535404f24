package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// tokens returns an authorization server that answers requests for a token with the result of
// answer, and the number of these requests.
func tokens(t *testing.T, answer func(form url.Values) string) (as *mcptest.AuthServer, asked *int) {
	asked = new(int)
	return mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" {
			return false
		}
		*asked++
		_ = r.ParseForm()
		if _, _, basic := r.BasicAuth(); basic || r.Form.Has("client_secret") || r.Form.Get("client_id") != "machine" {
			t.Errorf("a secret was sent, or the client is missing: %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		if text := answer(r.Form); text != "" {
			fmt.Fprint(w, text)
			return true
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"invalid_client"}`)
		return true
	}}), asked
}

// A client authenticates with a key of any supported kind.
func TestPrivateKeyOfAMachine(t *testing.T) {
	t.Parallel()
	p256, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, err2 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rsaKey, err3 := rsa.GenerateKey(rand.Reader, 2048)
	_, edKey, err4 := ed25519.GenerateKey(rand.Reader)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for algorithm, key := range map[jose.SignatureAlgorithm]crypto.Signer{jose.ES256: p256, jose.ES384: p384, jose.RS256: rsaKey, jose.EdDSA: edKey} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			var issuer string
			as, asked := tokens(t, func(form url.Values) string {
				if form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || form.Get("grant_type") != "client_credentials" {
					t.Errorf("asked with %v", form)
				}
				signed, err := jwt.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{algorithm})
				if err != nil {
					t.Error(err)
					return ""
				}
				var claims jwt.Claims
				if err := signed.Claims(key.Public(), &claims); err != nil {
					t.Error(err)
				}
				if err := claims.Validate(jwt.Expected{Issuer: "machine", Subject: "machine", AnyAudience: jwt.Audience{issuer}, Time: time.Now()}); err != nil || claims.ID == "" {
					t.Errorf("claims %+v: %v", claims, err)
				}
				return `{"access_token":"signed-for","token_type":"Bearer"}`
			})
			issuer = as.Base
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
			for _, text := range []string{text, strings.ReplaceAll(text, "\n", `\n`)} {
				server := serverOf(as, &schema.Auth{Grant: schema.GrantClientCredentials, ClientID: "machine", PrivateKey: text})
				_, session := clientFor(t, logins.NewFiles(t.TempDir()+"/logins"), server)
				if l, err := session.clientCredentials(deadline(t), http.Header{}); err != nil || l.AccessToken != "signed-for" {
					t.Errorf("got %+v, %v", l, err)
				}
			}
			if *asked != 2 {
				t.Errorf("%d requests for two logins", *asked)
			}
		})
	}
}

// A workload uses the token that the file of its platform has at each login. A rejected token is
// not sent again in another form.
func TestTokenOfAWorkload(t *testing.T) {
	t.Parallel()
	as, asked := tokens(t, func(form url.Values) string {
		if form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			t.Errorf("asked with %v", form)
		}
		if form.Get("assertion") == "second.w0rkload.token" {
			return `{"access_token":"for-the-workload","token_type":"Bearer"}`
		}
		return ""
	})
	path := filepath.Join(t.TempDir(), "token")
	server := serverOf(as, &schema.Auth{Grant: schema.GrantJWTBearer, ClientID: "machine", AssertionFile: path})
	_, session := clientFor(t, logins.NewFiles(t.TempDir()+"/logins"), server)
	login := func() (*logins.Login, error) { return session.clientCredentials(deadline(t), http.Header{}) }
	if _, err := login(); err == nil || !strings.Contains(err.Error(), "assertion_file") || *asked != 0 {
		t.Errorf("without a file: %v, asked %d times", err, *asked)
	}
	for n, text := range []string{"first.w0rkload.token\n", "second.w0rkload.token\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := login()
		switch {
		case n == 0 && (err == nil || !strings.Contains(err.Error(), "invalid_client") || strings.Contains(err.Error(), "w0rkload")):
			t.Errorf("rejected: got %v", err)
		case n == 1 && (err != nil || l.AccessToken != "for-the-workload"):
			t.Errorf("got %+v, %v", l, err)
		}
		if *asked != n+1 {
			t.Errorf("asked %d times for %d logins", *asked, n+1)
		}
	}
}

func TestKeysThatCannotSign(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"s3cret-text", "-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----\nczNjcmV0\n-----END EC PRIVATE KEY-----"} {
		if _, err := signerOf(key); err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "czNj") {
			t.Errorf("%q: got %v", key, err)
		}
	}
}
