package oauth

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// machineToken returns the token of the last login by client_credentials (RFC 6749, 4.4) or
// jwt_bearer (RFC 7523) while it is valid. These logins are kept in memory: another one costs
// one request and no person.
func (s *Session) machineToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.login != nil && s.login.Fresh(time.Now()) {
		return s.login.AccessToken
	}
	return ""
}

// machineLogin logs in with the client of the config after resp, a 401. It returns the token.
func (s *Session) machineLogin(ctx context.Context, rejected string, resp *http.Response) (string, error) {
	challenge := http.Header{"Www-Authenticate": resp.Header.Values("WWW-Authenticate")}
	return oneToken(ctx, &s.group, rejected, func(ctx context.Context) (string, error) { return s.machineLoginOnce(ctx, rejected, challenge) })
}

func (s *Session) machineLoginOnce(ctx context.Context, rejected string, challenge http.Header) (string, error) {
	if token := s.machineToken(); token != "" && token != rejected {
		return token, nil // another request was faster
	}
	s.mu.Lock()
	tooSoon := rejected != "" && time.Since(s.renewedAt) < renewPause || time.Now().Before(s.retryAt)
	s.mu.Unlock()
	if tooSoon {
		return "", nil
	}
	l, err := s.clientCredentials(ctx, challenge)
	if err != nil {
		s.pause(err)
		s.Logger.Warn("login failed", "upstream", s.key.Server, "err", err)
		return "", err
	}
	s.Hide(s.slot(), l.Secrets.All()...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login, s.issuer, s.renewedAt, s.retryAt, s.failures = l, l.Issuer, time.Now(), time.Time{}, 0
	return l.AccessToken, nil
}

func (s *Session) clientCredentials(ctx context.Context, challenge http.Header) (*logins.Login, error) {
	client, err := newClient(s.server, s.Hide, s.slot())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	before := &logins.Login{Issuer: s.issuer}
	if s.login != nil {
		before.TokenURL = s.login.TokenURL
	}
	s.mu.Unlock()
	resource, err := discover(client, s.server, challenge, before)
	if err != nil {
		return nil, err
	}
	a := s.server.Auth
	l := &logins.Login{Server: s.key.Server, ClientID: a.ClientID}
	proveTokens(client, l, resource)
	client.Transport = &granting{next: client.Transport, grant: s.grantFor(resource), auth: a, resource: resource}
	secret := cmp.Or(a.ClientSecret, "none") // required by the SDK, removed by granting
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{ClientID: a.ClientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret}},
		HTTPClient:  client,
	})
	if err != nil {
		return nil, err
	}
	if _, err := oauthex.ParseWWWAuthenticate(challenge.Values("WWW-Authenticate")); err != nil {
		challenge = http.Header{} // the metadata is found without it
	}
	resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: challenge, Body: http.NoBody}
	if err := handler.Authorize(ctx, &http.Request{URL: resource.server.name}, resp); err != nil {
		return nil, cmp.Or(resource.err, tokenError(err))
	}
	source, _ := handler.TokenSource(ctx) // set by Authorize, without an error
	token, err := source.Token()
	if err != nil {
		return nil, tokenError(err)
	}
	l.Issuer, l.TokenURL = resource.found.Issuer, resource.found.Token
	return l, takeToken(l, token)
}
