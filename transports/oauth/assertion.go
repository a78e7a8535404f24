package oauth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// An assertion replaces the secret in the SDK's client_credentials requests for tokens with a
// JWT: one signed with the client's key (private_key_jwt, RFC 7523, 2.2), or the grant of a
// workload or an identity provider (RFC 7523, 2.1).
type assertion struct {
	next   http.RoundTripper
	auth   *schema.Auth
	issuer func() string // of the authorization server, "" if it has no metadata
	// grant exchanges an ID token for a grant at the audience. It is nil without an identity provider.
	grant func(ctx context.Context, idToken, audience, scope string) (string, error)

	answer *http.Response // to the request for a token, nil before the request
	body   []byte         // of it
}

// RoundTrip implements http.RoundTripper. It is called by one login, one request at a time.
func (a *assertion) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return a.next.RoundTrip(req)
	}
	if a.answer == nil || a.auth.ClientSecret != "" {
		if err := a.ask(req); err != nil {
			return nil, err
		}
	}
	// The SDK tries a secret in the body after it was rejected in a header. Without a secret both
	// requests are equal, and the second one is not sent.
	resp := *a.answer
	resp.Body = io.NopCloser(bytes.NewReader(a.body))
	return &resp, nil
}

// ask sends the request for a token and keeps the answer.
func (a *assertion) ask(req *http.Request) error {
	text, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return err
	}
	if a.auth.ClientSecret == "" {
		form.Del("client_secret")
		form.Set("client_id", a.auth.ClientID)
	}
	if err := a.add(req.Context(), form, cmp.Or(a.issuer(), req.URL.String())); err != nil {
		return err
	}
	body := form.Encode()
	changed := req.Clone(req.Context())
	if a.auth.ClientSecret == "" {
		changed.Header.Del("Authorization")
	}
	changed.ContentLength = int64(len(body))
	changed.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	changed.Body, _ = changed.GetBody()
	resp, err := a.next.RoundTrip(changed)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if a.body, err = io.ReadAll(resp.Body); err == nil {
		a.answer = resp
	}
	return err
}

// add adds the assertion to a request for a token.
func (a *assertion) add(ctx context.Context, form url.Values, audience string) error {
	if a.auth.Grant == schema.GrantJWTBearer {
		return a.addGrant(ctx, form, audience)
	}
	signer, err := signerOf(a.auth.PrivateKey)
	if err != nil {
		return fmt.Errorf("private_key: %w", err)
	}
	now := time.Now()
	signed, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: a.auth.ClientID, Subject: a.auth.ClientID, Audience: jwt.Audience{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Minute)),
	}).Serialize()
	if err != nil {
		return fmt.Errorf("private_key: %w", err)
	}
	form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	form.Set("client_assertion", signed)
	return nil
}

// addGrant adds the assertion of a file as the grant (RFC 7523, 2.1).
func (a *assertion) addGrant(ctx context.Context, form url.Values, audience string) error {
	text, err := regular.Read(ctx, a.auth.AssertionFile, regular.Small)
	if err != nil {
		return fmt.Errorf("assertion_file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if a.grant != nil {
		if token, err = a.grant(ctx, token, audience, form.Get("scope")); err != nil {
			return err
		}
	}
	form.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
	form.Set("assertion", token)
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
