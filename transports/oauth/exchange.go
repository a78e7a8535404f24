package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	"github.com/dynmcp/dynmcp/internal/jwt"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// Callers keeps the last token that each user of a gateway called with, in memory, until it expires.
// The gateway has verified it. It is sent to the token endpoint of an exchange, and nowhere else.
type Callers struct {
	mu sync.Mutex
	of map[string]caller // by principal
}

type caller struct {
	token   string
	expires time.Time
}

// maxCallers is for how many users expired tokens are kept until others come.
const maxCallers = 1000

// Verified keeps the token of a principal.
func (c *Callers) Verified(principal, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[principal].token == token {
		return
	}
	if c.of == nil {
		c.of = map[string]caller{}
	}
	if len(c.of) >= maxCallers {
		for other, of := range c.of {
			if time.Now().After(of.expires) {
				delete(c.of, other)
			}
		}
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	_ = jwt.Decode(token, nil, &claims) // without a time it has expired
	c.of[principal] = caller{token, time.Unix(int64(claims.Expires), 0)}
}

// token returns the token of a principal, "" if there is none that is valid.
func (c *Callers) token(principal string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, ok := c.of[principal]
	switch {
	case !ok:
		return ""
	case time.Now().After(of.expires):
		delete(c.of, principal)
		return ""
	}
	return of.token
}

// Exchanges are the exchanges of a process, one per server and user.
type Exchanges struct {
	LoginOptions
	Callers *Callers

	mu    sync.Mutex
	byKey map[logins.Key]*Exchange
}

// For returns the exchange of a user's token for a server that has one.
func (all *Exchanges) For(server schema.Server, principal string) *Exchange {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.complete()
	key := logins.KeyOf(server).Of(principal)
	x := all.byKey[key]
	if x == nil && len(all.byKey) >= maxSessions {
		clear(all.byKey)
	}
	if x == nil || *x.server.Credentials.Exchange != *server.Credentials.Exchange || x.server.TLS != server.TLS {
		x = &Exchange{LoginOptions: all.LoginOptions, callers: all.Callers, key: key, server: server}
		if all.byKey == nil {
			all.byKey = map[logins.Key]*Exchange{}
		}
		all.byKey[key] = x
	}
	return x
}

// An Exchange gets tokens for one server in place of the token that a user has for the gateway (RFC
// 8693). They are kept in memory until they expire. It is safe for concurrent use.
type Exchange struct {
	LoginOptions
	callers *Callers
	key     logins.Key
	server  schema.Server
	group   singleflight.Group

	mu      sync.Mutex
	got     *logins.Login // nil before the first
	retryAt time.Time
	failed  error
}

// unstatedLife is how long a token is used that does not say when it expires.
const unstatedLife = 5 * time.Minute

// Transport returns a transport that adds the token to each request to the server's own origin.
// After a 401 the request is sent a second time with another token.
func (x *Exchange) Transport(base http.RoundTripper) http.RoundTripper {
	server, err := resourceOf(x.server.URL)
	if err != nil {
		return base // no request reaches an address that cannot be read
	}
	return &exchanged{x, server, base}
}

type exchanged struct {
	*Exchange
	resource Resource
	base     http.RoundTripper
}

func (t *exchanged) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.resource.SameOrigin(req.URL) {
		return t.base.RoundTrip(req)
	}
	token, err := t.token(req.Context(), "")
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := t.base.RoundTrip(withBearer(req, token))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	newer, err := t.token(req.Context(), token)
	again := rewound(req)
	if err != nil || newer == token || again == nil {
		return resp, nil // which says more than err
	}
	drain(resp)
	return t.base.RoundTrip(withBearer(again, newer))
}

// withBearer returns a copy of a request with a token.
func withBearer(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}

// Hint returns what a user can do about an answer that refuses the exchanged token.
func (x *Exchange) Hint(*http.Response) (text string, login bool) {
	return fmt.Sprintf(`the server refuses what the user's token was exchanged for: check "exchange" of %q in the config, and what this user may do there`, x.key.Server), false
}

// token returns a token other than the rejected one.
func (x *Exchange) token(ctx context.Context, rejected string) (string, error) {
	x.mu.Lock()
	got := x.got
	x.mu.Unlock()
	if got != nil && got.AccessToken != rejected && got.Fresh(time.Now()) {
		return got.AccessToken, nil
	}
	return oneToken(ctx, &x.group, rejected, x.exchange)
}

// failure is the reason why a request is not sent. It is for the user of the call.
func (x *Exchange) failure(code int64, hint string, cause error) error {
	return &transports.Failure{Upstream: x.key.Server, Code: code, Outcome: transports.NotSent, Personal: true, Cause: cause, Hint: hint}
}

// exchange exchanges the token with which the user called last.
func (x *Exchange) exchange(ctx context.Context) (string, error) {
	subject := x.callers.token(x.key.Principal)
	if subject == "" {
		return "", x.failure(transports.CodeAuthRequired, "call the gateway with a token of one of its gateway.issuers that is valid", errors.New("it is called with what the user's token is exchanged for, and this user has none"))
	}
	x.mu.Lock()
	wait, failed := time.Until(x.retryAt), x.failed
	x.mu.Unlock()
	if wait > 0 {
		return "", failed
	}
	x.Hide(x.key.Slot()+", caller", subject)
	token, err := x.request(ctx, subject)
	made := &logins.Login{Server: x.key.Server, Principal: x.key.Principal}
	if err == nil {
		err = takeToken(made, token)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.Logger.Warn("the exchange of a user's token failed", "upstream", x.key.Server, "err", err)
		code, hint := int64(transports.CodeUnreachable), "call again later; the operator finds the cause in the log"
		if errors.Is(err, errRelogin) {
			code, hint = transports.CodeAuthRequired, "log in at the gateway again; if that does not help, this user may not use the server"
		}
		x.failed, x.retryAt = x.failure(code, hint, fmt.Errorf("exchange the user's token: %w", err)), time.Now().Add(refreshPause)
		return "", x.failed
	}
	if made.Expires.IsZero() {
		made.Expires = made.Issued.Add(unstatedLife)
	}
	x.Hide(x.key.Slot(), made.AccessToken)
	x.got, x.failed, x.retryAt = made, nil, time.Time{}
	return made.AccessToken, nil
}

// Types of tokens and grants that package oauthex lacks (RFC 8693, 3; RFC 7523, 4).
const (
	grantJWT   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	typeAccess = "urn:ietf:params:oauth:token-type:access_token"
)

// request sends the requests of the form that the config names.
func (x *Exchange) request(ctx context.Context, subject string) (*oauth2.Token, error) {
	c := x.server.Credentials.Exchange
	form := url.Values{}
	set := func(name, value string) {
		if value != "" {
			form.Set(name, value)
		}
	}
	set("scope", c.Scope)
	if c.Form == schema.FormOnBehalfOf {
		set("grant_type", grantJWT)
		set("assertion", subject)
		set("requested_token_use", "on_behalf_of")
		return x.post(ctx, c.TokenURL, c.ClientID, c.ClientSecret, form)
	}
	set("grant_type", oauthex.GrantTypeTokenExchange)
	set("subject_token", subject)
	set("subject_token_type", typeAccess)
	set("requested_token_type", typeAccess)
	set("audience", c.Audience)
	set("resource", cmp.Or(c.Resource, x.server.URL))
	if c.Form != schema.FormIDJAG {
		return x.post(ctx, c.TokenURL, c.ClientID, c.ClientSecret, form)
	}
	form.Set("requested_token_type", oauthex.TokenTypeIDJAG)
	var header struct {
		Type string `json:"typ"`
	}
	if err := jwt.Decode(subject, &header, nil); err != nil || !strings.HasSuffix(strings.ToLower(header.Type), "at+jwt") {
		form.Set("subject_token_type", oauthex.TokenTypeIDToken)
	}
	grant, err := x.post(ctx, c.TokenURL, c.ClientID, c.ClientSecret, form)
	if err != nil {
		return nil, fmt.Errorf("the identity provider: %w", err)
	}
	if kind := grant.Extra("issued_token_type"); kind != oauthex.TokenTypeIDJAG {
		return nil, errors.New("the identity provider issued another token type than an id-jag")
	}
	x.Hide(x.key.Slot()+", grant", grant.AccessToken)
	return x.post(ctx, c.GrantURL, cmp.Or(c.GrantClientID, c.ClientID), c.GrantClientSecret, url.Values{"grant_type": {grantJWT}, "assertion": {grant.AccessToken}})
}

// post sends a form to a token endpoint of the config. It follows no redirect.
func (x *Exchange) post(ctx context.Context, endpoint, id, secret string, form url.Values) (*oauth2.Token, error) {
	client, err := configuredClient(x.server)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	config := clientcredentials.Config{ClientID: id, ClientSecret: secret, TokenURL: endpoint, EndpointParams: form, AuthStyle: oauth2.AuthStyleInHeader}
	if secret == "" {
		config.AuthStyle = oauth2.AuthStyleInParams
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok && (answer.ErrorCode == "invalid_grant" || answer.ErrorCode == "invalid_target" || answer.ErrorCode == "interaction_required" || answer.ErrorCode == "access_denied") {
		return nil, fmt.Errorf("%w: %w", errRelogin, tokenError(err))
	}
	if err != nil {
		return nil, tokenError(err)
	}
	return token, nil
}
