// Package issuer is an identity provider for benchmarks, which issues a token for any user.
package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An Issuer serves its keys until it is closed.
type Issuer struct {
	URL      string // for gateway.issuers
	Audience string // for gateway.audience
	server   *http.Server
	served   chan struct{}
	signer   jose.Signer
}

// New returns an issuer of tokens for an audience.
func New(audience string) (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p := &Issuer{Audience: audience, served: make(chan struct{})}
	if p.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k")); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.URL = "http://" + ln.Addr().String()
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := any(map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
		if r.URL.Path == "/keys" {
			said = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(said) // fails only if the client is gone
	})}
	p.server.SetKeepAlivesEnabled(false) // so that an idle run has no connections
	go func() {
		defer close(p.served)
		_ = p.server.Serve(ln) // until it is closed
	}()
	return p, nil
}

// Close stops the issuer.
func (p *Issuer) Close() { p.server.Close(); <-p.served }

// Token returns a token of a user, valid for a day.
func (p *Issuer) Token(user string) string {
	signed, err := p.signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":%q,"exp":%d}`, p.URL, p.Audience, user, time.Now().Add(24*time.Hour).Unix()))
	if err != nil {
		panic(err) // not reached: the key fits the algorithm
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err) // not reached: it has one signature
	}
	return token
}
