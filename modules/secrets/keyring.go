package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/keyring"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/secretref"
)

// A stored is the scheme keyring: the secrets that the verb secret keeps.
type stored struct{}

func (stored) Scheme() string { return secret.InKeyring }

func (stored) Resolve(_ context.Context, name string, _ *redact.Redactor) (string, error) {
	what := "${keyring:" + name + "} has no value"
	if !secret.Name().MatchString(name) {
		return "", &secretref.Error{What: "a ${keyring:…} has no value", Hint: "a name has letters, digits and _ . / @ -"}
	}
	value, err := keyring.Get(secret.Service, name)
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return "", &secretref.Error{What: what, Hint: "store it with: dynmcp secret set " + name}
	case err != nil:
		return "", &secretref.Error{What: what, Hint: fmt.Sprintf("the keyring cannot be used (%v): %s", err, secret.NoKeyring)}
	}
	return secretref.Checked(value, what)
}
