package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// A keyGrant is that of a client with a key: a JWT signed with it (private_key_jwt, RFC 7523, 2.2).
type keyGrant struct{ client, key string }

func (g keyGrant) fill(_ context.Context, form url.Values, audience string) error {
	signer, err := signerOf(g.key)
	if err != nil {
		return fmt.Errorf("private_key: %w", err)
	}
	now := time.Now()
	signed, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: g.client, Subject: g.client, Audience: jwt.Audience{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Minute)),
	}).Serialize()
	if err != nil {
		return fmt.Errorf("private_key: %w", err)
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", signed)
	return nil
}

// signerOf returns the signer for a key in PEM. In variables, \n often stands for a line break.
func signerOf(key string) (jose.Signer, error) {
	block, _ := pem.Decode([]byte(strings.ReplaceAll(key, `\n`, "\n")))
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("not a private key in PEM, PKCS #8: openssl pkcs8 -topk8 -nocrypt writes one")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("this private key cannot be read")
	}
	var algorithm jose.SignatureAlgorithm
	switch private := parsed.(type) {
	case *ecdsa.PrivateKey:
		algorithm = map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[private.Curve.Params().BitSize]
	case *rsa.PrivateKey:
		algorithm = jose.RS256
	case ed25519.PrivateKey:
		algorithm = jose.EdDSA
	}
	return jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: parsed}, new(jose.SignerOptions).WithType("JWT"))
}
