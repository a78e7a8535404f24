package oauth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A resourceCheck ends a login whose resource metadata must not be used (RFC 9728, 3.3). The SDK
// ignores such metadata and continues with the server's own origin, as if there were none. It
// is used by one login, one request at a time.
type resourceCheck struct {
	next  http.RoundTripper
	guard *guard
	named string // the address of metadata in the server's challenge, "" if absent

	err      error  // why the login must end; no more requests are sent after it
	resource string // the metadata's name for the server, "" without metadata
	// By its challenge or metadata, the server accepts tokens bound to a key. Support by the
	// authorization server is not enough: many support it for servers that do not.
	proofs bool
}

// checkResource puts a resourceCheck in front of the client of a login. It is an error if the
// address in the challenge must not be requested.
func checkResource(client *http.Client, server schema.Server, challenge http.Header) (*resourceCheck, error) {
	g, err := newGuard(server)
	if err != nil {
		return nil, err
	}
	c := &resourceCheck{next: client.Transport, guard: g}
	client.Transport = c
	given, _ := oauthex.ParseWWWAuthenticate(challenge.Values("WWW-Authenticate")) // without it, well-known addresses are tried
	for _, one := range given {
		c.proofs = c.proofs || one.Scheme == "dpop"
		c.named = cmp.Or(c.named, one.Params["resource_metadata"])
	}
	if c.named == "" {
		return c, nil
	}
	return c, c.checkAddress("its resource metadata", c.named)
}

func (c *resourceCheck) checkAddress(what, address string) error {
	u, err := url.Parse(address)
	if err == nil {
		err = c.guard.check(u)
	}
	if err != nil {
		return fmt.Errorf("the server names %s at %s: %w", what, withoutQuery(address), err)
	}
	return nil
}

// name returns the resource for which tokens are requested.
func (c *resourceCheck) name() string { return cmp.Or(c.resource, c.guard.server.String()) }

func (c *resourceCheck) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.err != nil {
		closeBody(req)
		return nil, c.err
	}
	resp, err := c.next.RoundTrip(req)
	asked := beforeRedirects(req)
	if req.Method != http.MethodGet || asked.String() != c.named && !strings.HasPrefix(asked.Path, resourceWellKnown) {
		return resp, err
	}
	switch {
	case errors.As(err, new(*BlockedAddressError)):
		err = fmt.Errorf("its resource metadata: %w", err)
	case err != nil || resp.StatusCode != http.StatusOK:
		return resp, err // absent
	default:
		var body []byte
		if body, err = io.ReadAll(resp.Body); err == nil {
			err = c.check(asked, body)
		}
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	if c.err = err; err != nil {
		return nil, err
	}
	return resp, nil
}

// beforeRedirects returns the address that led to a request.
func beforeRedirects(req *http.Request) *url.URL {
	for req.Response != nil {
		req = req.Response.Request
	}
	return req.URL
}

const resourceWellKnown = "/.well-known/oauth-protected-resource"

// check returns why metadata from an address must not be used. It ignores invalid metadata.
func (c *resourceCheck) check(at *url.URL, body []byte) error {
	var found oauthex.ProtectedResourceMetadata
	if json.Unmarshal(body, &found) != nil || found.Resource == "" && len(found.AuthorizationServers) == 0 {
		return nil
	}
	c.resource = found.Resource
	c.proofs = c.proofs || found.DPOPBoundAccessTokensRequired || slices.Contains(found.DPOPSigningAlgValuesSupported, string(jose.ES256))
	for i, address := range found.AuthorizationServers {
		// The first one is used, and all must be addresses of authorization servers.
		if i > 0 && strings.HasPrefix(address, "https://") {
			continue
		}
		if err := c.checkAddress("an authorization server", address); err != nil {
			return err
		}
	}
	server := c.guard.server
	want := server.String()
	if at.Path == resourceWellKnown && at.String() != c.named {
		want = origin(server)
	}
	if found.Resource == want {
		return nil
	}
	// Without metadata the SDK uses the server's own origin. If a server only spells its own address
	// differently, that is the same origin.
	resource, err := url.Parse(found.Resource)
	if err == nil && origin(resource) == origin(server) && len(found.AuthorizationServers) > 0 {
		if named, err := url.Parse(found.AuthorizationServers[0]); err == nil && origin(named) == origin(server) {
			return nil
		}
	}
	return fmt.Errorf("its resource metadata is that of another resource, %s (RFC 9728, 3.3)", withoutQuery(found.Resource))
}

// withoutQuery returns an address for messages, without its parameters, which may be secret.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return transports.Printable([]byte(address), 200)
}

func origin(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }
