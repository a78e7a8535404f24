package oauth

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/dynmcp/dynmcp/schema"
)

// A grant is what a machine logs in with in place of a secret.
type grant interface {
	// fill changes the SDK's client_credentials request for a token. audience is the issuer of the authorization
	// server, or without metadata its token endpoint.
	fill(ctx context.Context, form url.Values, audience string) error
}

// grantFor returns the grant of the config for a resource, nil for a client that has only a secret.
func (s *Session) grantFor(resource *discovery) grant {
	switch a := s.server.Auth; {
	case a.Grant == schema.GrantJWTBearer && a.IDP != "":
		return idpGrant{fileGrant{a.AssertionFile}, s, resource}
	case a.Grant == schema.GrantJWTBearer:
		return fileGrant{a.AssertionFile}
	case a.ClientSecret == "":
		return keyGrant{a.ClientID, a.PrivateKey}
	}
	return nil
}

// A granting puts the grant and the scopes of the config into the requests for a token of one login.
type granting struct {
	next http.RoundTripper
	grant
	auth     *schema.Auth
	resource *discovery

	answer *http.Response // to the request for a token, nil before the request
	body   []byte         // of it
}

// RoundTrip implements http.RoundTripper. It is called by one login, one request at a time.
func (g *granting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return g.next.RoundTrip(req)
	}
	if g.answer == nil || g.auth.ClientSecret != "" {
		if err := g.ask(req); err != nil {
			return nil, err
		}
	}
	// The SDK tries a secret in the body after it was rejected in a header. Without a secret both
	// requests are equal, and the second one is not sent.
	resp := *g.answer
	resp.Body = io.NopCloser(bytes.NewReader(g.body))
	return &resp, nil
}

// ask sends the request for a token and keeps the answer.
func (g *granting) ask(req *http.Request) error {
	text, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return err
	}
	changed := req.Clone(req.Context())
	if g.auth.ClientSecret == "" {
		form.Del("client_secret")
		form.Set("client_id", g.auth.ClientID)
		changed.Header.Del("Authorization")
	}
	if scope := strings.Fields(g.auth.Scope); len(scope) > 0 {
		form.Set("scope", strings.Join(scope, " "))
	}
	if g.grant != nil {
		if err := g.fill(req.Context(), form, cmp.Or(g.resource.found.Issuer, req.URL.String())); err != nil {
			return err
		}
	}
	body := form.Encode()
	changed.ContentLength = int64(len(body))
	changed.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	changed.Body, _ = changed.GetBody()
	resp, err := g.next.RoundTrip(changed)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if g.body, err = io.ReadAll(resp.Body); err == nil {
		g.answer = resp
	}
	return err
}
