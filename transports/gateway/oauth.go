package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/dynmcp/dynmcp/internal/jwt"
)

// OAuth makes the gateway a resource server of OAuth 2.1 (MCP, "Authorization"). It accepts
// tokens that authorization servers issued for it, and issues none.
type OAuth struct {
	Issuers  []string // accepted issuers, exactly as in the claim iss
	Audience string   // required audience: the address of the gateway that hosts use
	Scopes   []string // required scopes
	Callers  Callers  // is told which token each user called with; may be nil
}

// Callers learns the tokens of users, which were verified.
type Callers interface {
	Verified(principal, token string)
}

// callerHeader has the token of the user on the way to another replica, which may exchange it. A
// host cannot set it.
const callerHeader = "Dynmcp-Caller"

// algorithms are the accepted signature algorithms: those with a public key.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// metadataPath is the path of the protected resource metadata (RFC 9728, section 3).
const metadataPath = "/.well-known/oauth-protected-resource"

var (
	errNoToken = errors.New("a bearer token is required")
	errScope   = errors.New("the token lacks a scope")
)

// A verifier checks tokens of the issuers in the config.
type verifier struct {
	OAuth
	client *http.Client

	mu    sync.Mutex
	known map[string]*oidc.IDTokenVerifier // by issuer, once the address of its keys is known
}

// tokenTypes are the types of access tokens (RFC 9068). Other tokens of an issuer, such as those of
// a logout, have types of their own; many issuers give none.
var tokenTypes = []string{"", "jwt", "at+jwt"}

// maxSkew is the difference between the clocks of issuers and ours that is tolerated.
const maxSkew = time.Minute

// isAhead reports whether a time in seconds of Unix time is later than now.
func isAhead(seconds json.Number) bool {
	at, err := seconds.Float64()
	return err == nil && at > float64(time.Now().Add(maxSkew).Unix())
}

// principal returns the user that a token (JWT, RFC 9068) was issued to.
func (v *verifier) principal(ctx context.Context, token string) (string, error) {
	var claims struct {
		Issuer string      `json:"iss"`
		Scope  string      `json:"scope"`
		After  json.Number `json:"nbf"`
	}
	var header struct {
		Type string `json:"typ"`
	}
	switch {
	case jwt.Decode(token, &header, &claims) != nil:
		return "", errNoToken
	case !slices.Contains(tokenTypes, strings.TrimPrefix(strings.ToLower(header.Type), "application/")):
		return "", errors.New("the token is no access token")
	case isAhead(claims.After): // the verifier allows five minutes
		return "", errors.New("the token is not valid yet")
	case !slices.Contains(v.Issuers, claims.Issuer): // checked before any request to the issuer
		return "", errors.New("the token names an issuer that is not in the config")
	}
	check, err := v.verifierFor(ctx, claims.Issuer)
	if err != nil {
		return "", fmt.Errorf("fetch the keys of %s: %w", claims.Issuer, err)
	}
	checked, err := check.Verify(oidc.ClientContext(ctx, v.client), token)
	if err != nil {
		return "", err
	}
	if checked.Subject == "" {
		return "", errors.New("the token has no subject")
	}
	has := strings.Fields(claims.Scope)
	for _, scope := range v.Scopes {
		if !slices.Contains(has, scope) {
			return "", errScope
		}
	}
	return checked.Issuer + " " + checked.Subject, nil
}

// verifierFor returns the verifier for the tokens of an issuer. The verifier fetches the keys of
// the issuer when they are needed, and again for a token with an unknown key.
func (v *verifier) verifierFor(ctx context.Context, issuer string) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	check := v.known[issuer]
	v.mu.Unlock()
	if check != nil {
		return check, nil
	}
	keys, err := v.keysOf(ctx, issuer)
	if err != nil {
		return nil, err
	}
	// The key set uses this context for its later requests.
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), v.client), keys)
	check = oidc.NewVerifier(issuer, set, &oidc.Config{ClientID: v.Audience, SupportedSigningAlgs: algorithms})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known[issuer] = check
	return check, nil
}

// keysOf returns the address of the keys of an issuer, from its metadata (RFC 8414, section 3;
// OpenID Connect Discovery, section 4).
func (v *verifier) keysOf(ctx context.Context, issuer string) (string, error) {
	at, err := url.Parse(issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(at.Path, "/")
	var last error
	for _, where := range []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration"} {
		at.Path = where
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return "", err
		}
		resp, err := v.client.Do(r)
		if err != nil {
			last = err
			continue
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		var metadata struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		switch {
		case err != nil:
			last = err
		case resp.StatusCode != http.StatusOK:
			last = fmt.Errorf("%s: %s", at, resp.Status)
		case json.Unmarshal(body, &metadata) != nil || metadata.Keys == "":
			last = fmt.Errorf("%s names no keys", at)
		case metadata.Issuer != issuer:
			last = fmt.Errorf("%s names another issuer", at)
		default:
			return metadata.Keys, nil
		}
	}
	return "", last
}

// metadata answers with the protected resource metadata (RFC 9728). It requires no token.
func (v *verifier) metadata(w http.ResponseWriter) {
	body, _ := json.Marshal(struct { // texts always marshal
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{v.Audience, v.Issuers, v.Scopes, []string{"header"}, "dynmcp"})
	writeJSON(w, http.StatusOK, body)
}

// challenge returns the status and the WWW-Authenticate header for a token that failed with
// err (RFC 6750, section 3; RFC 9728, section 5).
func (v *verifier) challenge(err error) (status int, header string) {
	where := v.Audience
	if at, parseErr := url.Parse(v.Audience); parseErr == nil && at.Host != "" {
		where = at.Scheme + "://" + at.Host + metadataPath + strings.TrimSuffix(at.Path, "/")
	}
	status, header = http.StatusUnauthorized, `Bearer resource_metadata="`+where+`"`
	if len(v.Scopes) > 0 {
		header += `, scope="` + strings.Join(v.Scopes, " ") + `"`
	}
	switch {
	case errors.Is(err, errScope):
		return http.StatusForbidden, header + `, error="insufficient_scope"`
	case !errors.Is(err, errNoToken):
		header += `, error="invalid_token"`
	}
	return status, header
}
