package logins

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// A Login is the result of a login. It is bound to one issuer: tokens and the secret of the
// client are sent only to that issuer's endpoints.
type Login struct {
	Server      string           `json:"server"`
	Principal   string           `json:"principal,omitempty"` // the user of a gateway, "" for the one who runs dynmcp
	Issuer      string           `json:"issuer"`
	Resource    string           `json:"resource"` // RFC 8707, as in the request for tokens
	ClientID    string           `json:"client_id"`
	TokenURL    string           `json:"token_endpoint"`
	RevokeURL   string           `json:"revocation_endpoint,omitempty"`
	RegisterURL string           `json:"registration_client_uri,omitempty"` // RFC 7592
	AuthStyle   oauth2.AuthStyle `json:"auth_style,omitempty"`
	Scopes      []string         `json:"scopes,omitempty"`
	Wanted      []string         `json:"wanted,omitempty"` // scopes that the server has requested since
	Issued      time.Time        `json:"issued"`
	Expires     time.Time        `json:"expires,omitzero"` // of the access token, zero if unknown

	// For Peek, which does not read the secrets.
	HasToken bool `json:"has_token"`
	Renews   bool `json:"renews"` // there is a refresh token

	Secrets `json:"-"`
}

// Secrets are the secret parts of a login.
type Secrets struct {
	AccessToken       string `json:"access_token,omitempty"`
	RefreshToken      string `json:"refresh_token,omitempty"`
	ClientSecret      string `json:"client_secret,omitempty"`
	RegistrationToken string `json:"registration_access_token,omitempty"`
	DPoPKey           string `json:"dpop_key,omitempty"` // the key that the tokens are bound to (RFC 9449), PKCS #8 in Base64

	// Values are what a user keeps for ${user:NAME}, by name: see values.go.
	Values map[string]string `json:"values,omitempty"`
}

// All returns the secrets, to hide them in output.
func (s Secrets) All() []string {
	return append(slices.Collect(maps.Values(s.Values)), s.AccessToken, s.RefreshToken, s.ClientSecret, s.RegistrationToken, s.DPoPKey)
}

// Fresh reports whether the access token is valid for another minute, or for a quarter of its
// life if that is shorter.
func (l *Login) Fresh(now time.Time) bool {
	margin := min(time.Minute, l.Expires.Sub(l.Issued)/4)
	return l.AccessToken != "" && (l.Expires.IsZero() || now.Add(margin).Before(l.Expires))
}

// State describes the result of Peek in a few words: nil is "not logged in".
func (l *Login) State(now time.Time) string {
	switch {
	case l == nil || !l.HasToken && !l.Renews:
		return "not logged in"
	case len(l.Wanted) > 0:
		return "logged in, more scopes wanted"
	case l.Expires.IsZero() || l.Renews && now.After(l.Expires):
		return "logged in"
	case now.After(l.Expires):
		return "login expired"
	}
	return fmt.Sprintf("logged in (expires in %s)", inWords(l.Expires.Sub(now)))
}

// inWords formats a duration for people, in at most two units.
func inWords(d time.Duration) string {
	hours, minutes := int(d.Hours()), int(d.Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case hours == 0:
		return fmt.Sprintf("%dm", minutes)
	case hours < 24 && minutes%60 == 0:
		return fmt.Sprintf("%dh", hours)
	case hours < 24:
		return fmt.Sprintf("%dh %dm", hours, minutes%60)
	case hours%24 == 0:
		return fmt.Sprintf("%dd", hours/24)
	}
	return fmt.Sprintf("%dd %dh", hours/24, hours%24)
}

// Valid reports whether the access token has not expired, as far as known.
func (l *Login) Valid(now time.Time) bool {
	return l.AccessToken != "" && (l.Expires.IsZero() || now.Before(l.Expires))
}

// maxWanted is how many scopes a server may have the next login ask for.
const maxWanted = 100

// Want adds scopes that the login lacks and reports whether there were any.
func (l *Login) Want(scopes []string) bool {
	before := len(l.Wanted)
	for _, s := range scopes {
		if !slices.Contains(l.Scopes, s) && !slices.Contains(l.Wanted, s) && len(l.Wanted) < maxWanted {
			l.Wanted = append(l.Wanted, s)
		}
	}
	return len(l.Wanted) > before
}

// bound returns the part of a login that its seal binds the secrets to, so that write access to
// the file is not enough to send them elsewhere.
func (l *Login) bound() []byte {
	parts := []string{l.Server, l.Issuer, l.Resource, l.ClientID, l.TokenURL, l.RevokeURL, l.RegisterURL}
	if l.Principal != "" {
		parts = append(parts, l.Principal)
	}
	return []byte(strings.Join(parts, "\n"))
}

// NewProofKey makes and keeps the key that tokens will be bound to (RFC 9449).
func (s *Secrets) NewProofKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	s.DPoPKey = base64.StdEncoding.EncodeToString(der)
	return key, err
}

// ProofKey returns the key that the tokens of a login are bound to, nil if they are unbound.
func (s *Secrets) ProofKey() (*ecdsa.PrivateKey, error) {
	if s.DPoPKey == "" {
		return nil, nil
	}
	der, err := base64.StdEncoding.DecodeString(s.DPoPKey)
	if err == nil {
		parsed, _ := x509.ParsePKCS8PrivateKey(der)
		if key, ok := parsed.(*ecdsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, errors.New("the key that its tokens are bound to is broken")
}
