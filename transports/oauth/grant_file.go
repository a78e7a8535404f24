package oauth

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// A fileGrant is that of a workload: the token that its platform keeps in a file (RFC 7523, 2.1).
type fileGrant struct{ path string }

func (g fileGrant) fill(ctx context.Context, form url.Values, _ string) error {
	token, err := g.token(ctx)
	setAssertion(form, token)
	return err
}

func (g fileGrant) token(ctx context.Context) (string, error) {
	text, err := regular.Read(ctx, g.path, regular.Small)
	if err != nil {
		return "", fmt.Errorf("assertion_file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// setAssertion makes a token the grant of a request.
func setAssertion(form url.Values, token string) {
	form.Set("grant_type", grantJWT)
	form.Set("assertion", token)
}
