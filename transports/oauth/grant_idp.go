package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// An idpGrant is that of a person at the company's identity provider, which exchanges the ID token of a
// file for a grant at the authorization server (an ID-JAG, MCP "Enterprise-Managed Authorization").
type idpGrant struct {
	file     fileGrant
	session  *Session
	resource *discovery
}

func (g idpGrant) fill(ctx context.Context, form url.Values, audience string) error {
	idToken, err := g.file.token(ctx)
	if err != nil {
		return err
	}
	a, s := g.session.server.Auth, g.session
	client, err := newClient(s.server, s.Hide, s.slot()+" at its identity provider")
	if err != nil {
		return err
	}
	endpoint, err := exchangeEndpoint(ctx, client, a.IDP)
	if err != nil {
		return fmt.Errorf("idp %s: %w", withoutQuery(a.IDP), withoutURL(err))
	}
	token, err := oauthex.ExchangeToken(ctx, endpoint, &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG,
		Audience:           audience,
		Resource:           g.resource.name(),
		Scope:              strings.Fields(form.Get("scope")),
		SubjectToken:       idToken,
		SubjectTokenType:   oauthex.TokenTypeIDToken,
	}, credentialsOf(a.IDPClientID, a.IDPClientSecret), client)
	if err != nil {
		return fmt.Errorf("idp %s: %w", withoutQuery(a.IDP), tokenError(err))
	}
	if kind := token.Extra("issued_token_type"); kind != oauthex.TokenTypeIDJAG {
		return fmt.Errorf("idp %s: it issued another token type than requested", withoutQuery(a.IDP))
	}
	setAssertion(form, token.AccessToken)
	return nil
}

// credentialsOf returns the credentials of a client; the secret may be empty.
func credentialsOf(id, secret string) *oauthex.ClientCredentials {
	credentials := &oauthex.ClientCredentials{ClientID: id}
	if secret != "" {
		credentials.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: secret}
	}
	return credentials
}

// exchangeEndpoint returns the token endpoint of an OpenID provider. The SDK rejects metadata
// without PKCE, which an exchange does not use and many providers do not mention.
func exchangeEndpoint(ctx context.Context, client *http.Client, issuer string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var found authorizationServer
	switch err := json.NewDecoder(resp.Body).Decode(&found); {
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("its metadata: HTTP status %s", resp.Status)
	case err != nil || found.Token == "":
		return "", errors.New("its metadata names no token endpoint")
	case found.Issuer != issuer:
		return "", fmt.Errorf("its metadata is that of another issuer, %s", withoutQuery(found.Issuer))
	}
	return found.Token, nil
}
