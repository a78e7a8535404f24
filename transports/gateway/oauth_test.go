package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An issuer is an authorization server.
type issuer struct {
	t   *testing.T
	url string
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	var body any
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		body = map[string]string{"issuer": i.url, "jwks_uri": i.url + "/keys"}
	case "/keys":
		body = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
	default:
		http.NotFound(w, r)
		return
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		i.t.Error(err)
	}
}

// bearer returns the Authorization header for a user, with the audience "tests".
func (i *issuer) bearer(user string) string {
	i.t.Helper()
	return "Bearer " + i.sign(jose.ES256, i.key, map[string]any{"iss": i.url, "sub": user, "aud": "tests", "exp": time.Now().Add(time.Hour).Unix()})
}

// sign returns a token with claims, signed with a key for an algorithm.
func (i *issuer) sign(alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	i.t.Helper()
	return i.signAs("k", alg, key, claims)
}

// signAs is sign with the id of the key.
func (i *issuer) signAs(name string, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	i.t.Helper()
	return i.signWith((&jose.SignerOptions{}).WithHeader("kid", name), alg, key, claims)
}

// typed returns a token of a type.
func (i *issuer) typed(typ string, claims map[string]any) string {
	i.t.Helper()
	return i.signWith((&jose.SignerOptions{}).WithHeader("kid", "k").WithHeader("typ", typ), jose.ES256, i.key, claims)
}

func (i *issuer) signWith(options *jose.SignerOptions, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	i.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		i.t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

func TestTokensOfAnIdentityProvider(t *testing.T) {
	t.Parallel()
	ours, other := newIssuer(t), newIssuer(t)
	const audience = "https://mcp.example.com/mcp"
	tg := newTestGateway(t, GatewayOptions{Token: "secret", OAuth: &OAuth{Issuers: []string{ours.url}, Audience: audience, Scopes: []string{"mcp"}}}, nil)
	claims := func(changes ...any) map[string]any {
		c := map[string]any{"iss": ours.url, "sub": "ann", "aud": audience, "scope": "other mcp", "exp": time.Now().Add(time.Hour).Unix()}
		for i := 0; i+1 < len(changes); i += 2 {
			c[changes[i].(string)] = changes[i+1]
		}
		return c
	}
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+ours.url+`","sub":"ann","aud":"`+audience+`","scope":"mcp","exp":99999999999}`)) + "."
	public, err := x509.MarshalPKIXPublicKey(ours.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		token  string
		status int
		says   string // part of the challenge
	}{
		"a token for us":                {ours.sign(jose.ES256, ours.key, claims()), 200, ""},
		"one for us among others":       {ours.sign(jose.ES256, ours.key, claims("aud", []string{"x", audience})), 200, ""},
		"the token of the config":       {"secret", 200, ""},
		"for others":                    {ours.sign(jose.ES256, ours.key, claims("aud", "https://other.example.com")), 401, "invalid_token"},
		"for many others":               {ours.sign(jose.ES256, ours.key, claims("aud", []string{"x", "y"})), 401, "invalid_token"},
		"without an audience":           {ours.sign(jose.ES256, ours.key, claims("aud", "")), 401, "invalid_token"},
		"of another issuer":             {other.sign(jose.ES256, other.key, claims("iss", other.url)), 401, "invalid_token"},
		"signed by another in our name": {other.sign(jose.ES256, other.key, claims()), 401, "invalid_token"},
		"expired":                       {ours.sign(jose.ES256, ours.key, claims("exp", time.Now().Add(-time.Hour).Unix())), 401, "invalid_token"},
		"not valid yet":                 {ours.sign(jose.ES256, ours.key, claims("nbf", time.Now().Add(time.Hour).Unix())), 401, "invalid_token"},
		"not valid yet, by minutes":     {ours.sign(jose.ES256, ours.key, claims("nbf", time.Now().Add(2*time.Minute).Unix())), 401, "invalid_token"},
		"never valid":                   {ours.sign(jose.ES256, ours.key, claims("nbf", 1e300)), 401, "invalid_token"},
		"by a clock that is ahead":      {ours.sign(jose.ES256, ours.key, claims("nbf", time.Now().Add(maxSkew/2).Unix())), 200, ""},
		"an access token":               {ours.typed("at+jwt", claims()), 200, ""},
		"an application/at+jwt":         {ours.typed("application/AT+JWT", claims()), 200, ""},
		"a JWT":                         {ours.typed("JWT", claims()), 200, ""},
		"a token of a logout":           {ours.typed("logout+jwt", claims()), 401, "invalid_token"},
		"a proof of a key":              {ours.typed("dpop+jwt", claims()), 401, "invalid_token"},
		"a security event":              {ours.typed("secevent+jwt", claims()), 401, "invalid_token"},
		"without a signature":           {unsigned, 401, "invalid_token"},
		"signed with the public key":    {ours.sign(jose.HS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), claims()), 401, "invalid_token"},
		"without a subject":             {ours.sign(jose.ES256, ours.key, claims("sub", "")), 401, "invalid_token"},
		"without the scope":             {ours.sign(jose.ES256, ours.key, claims("scope", "other")), 403, "insufficient_scope"},
		"no token":                      {"", 401, "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\""},
		"a text that is no token":       {"a.b.c", 401, "resource_metadata"},
	} {
		a := tg.do("POST", "/mcp", initialize, "Authorization", "Bearer "+c.token)
		if a.status != c.status || !strings.Contains(a.header.Get("WWW-Authenticate"), c.says) {
			t.Errorf("%s: got %d, %s", what, a.status, a.header.Get("WWW-Authenticate"))
		}
	}

	ann, bob := ours.sign(jose.ES256, ours.key, claims()), ours.sign(jose.ES256, ours.key, claims("sub", "bob"))
	id := tg.do("POST", "/mcp", initialize, "Authorization", "Bearer "+ann).header.Get("Mcp-Session-Id")
	if a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id, "Authorization", "Bearer "+bob); a.status != 404 {
		t.Errorf("the session of another user: %+v", a)
	}
	again := ours.sign(jose.ES256, ours.key, claims("exp", time.Now().Add(2*time.Hour).Unix()))
	if a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id, "Authorization", "Bearer "+again); a.status != 200 {
		t.Errorf("another token of the same user: %+v", a)
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		a := tg.do("GET", path, "")
		if a.status != 200 || !strings.Contains(a.body, `"resource":"`+audience+`"`) || !strings.Contains(a.body, ours.url) {
			t.Errorf("got %+v", a)
		}
		if a := tg.do("GET", path, "", "Host", "evil.com"); a.status != 403 {
			t.Errorf("got %+v", a)
		}
	}
	for _, path := range []string{"/authorize", "/token", "/register", "/.well-known/oauth-authorization-server"} {
		if a := tg.do("GET", path, "", "Authorization", "Bearer secret"); a.status != 404 {
			t.Errorf("%s: got %+v", path, a)
		}
	}
}
