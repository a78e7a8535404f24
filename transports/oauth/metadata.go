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
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A resourceCheck ends a login whose resource metadata must not be used (RFC 9728, 3.3).
// The SDK passes over such metadata and goes on with the server's own origin, as if the
// server had none.
type resourceCheck struct {
	next   http.RoundTripper
	guard  *guard
	server *url.URL
	named  string // the address of metadata in the server's challenge, "" if absent

	mu       sync.Mutex
	unusable error  // after it nothing is asked any more
	resource string // what the metadata calls the server, "" without metadata
	proofs   bool   // the server takes tokens that are bound to a key, by its challenge or metadata
}

// checkResource puts a resourceCheck in front of the client of a login. The error says
// that the address which the challenge names must not be asked.
func checkResource(client *http.Client, server schema.Server, challenge http.Header) (*resourceCheck, error) {
	address, err := url.Parse(server.URL)
	if err != nil {
		return nil, err
	}
	g, err := newGuard(address, server.Auth)
	if err != nil {
		return nil, err
	}
	c := &resourceCheck{next: client.Transport, guard: g, server: address}
	client.Transport = c
	given, _ := oauthex.ParseWWWAuthenticate(challenge.Values("WWW-Authenticate")) // without it metadata is looked for
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
		return fmt.Errorf("the server names %s at %s: %w", what, shown(address), err)
	}
	return nil
}

// err returns why the login had to end, nil if it had not.
func (c *resourceCheck) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unusable
}

// wantsProofs reports whether tokens for the server are to be bound to a key. That its
// authorization server can bind some says nothing of it: many do, for servers that cannot.
func (c *resourceCheck) wantsProofs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proofs
}

// name returns the resource that tokens are asked for.
func (c *resourceCheck) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.resource, c.server.String())
}

// RoundTrip implements http.RoundTripper.
func (c *resourceCheck) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.err(); err != nil {
		return nil, err
	}
	resp, err := c.next.RoundTrip(req)
	asked := req // before redirects
	for asked.Response != nil {
		asked = asked.Response.Request
	}
	if req.Method != http.MethodGet || asked.URL.String() != c.named && !strings.HasPrefix(asked.URL.Path, resourceWellKnown) {
		return resp, err
	}
	switch {
	case errors.As(err, new(*RefusedError)):
		err = fmt.Errorf("its resource metadata: %w", err)
	case err != nil || resp.StatusCode != http.StatusOK:
		return resp, err // absent
	default:
		var body []byte
		if body, err = io.ReadAll(resp.Body); err == nil {
			err = c.check(asked.URL, body)
		}
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err != nil {
		return nil, c.refuse(err)
	}
	return resp, nil
}

// refuse keeps why the metadata is unusable, and returns it.
func (c *resourceCheck) refuse(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unusable = err
	return err
}

const resourceWellKnown = "/.well-known/oauth-protected-resource"

// check returns why metadata that was found at an address must not be used. What is no
// metadata is as if there were none.
func (c *resourceCheck) check(at *url.URL, body []byte) error {
	var found oauthex.ProtectedResourceMetadata
	if json.Unmarshal(body, &found) != nil || found.Resource == "" && len(found.AuthorizationServers) == 0 {
		return nil
	}
	c.mu.Lock()
	c.resource = found.Resource
	c.proofs = c.proofs || found.DPOPBoundAccessTokensRequired || slices.Contains(found.DPOPSigningAlgValuesSupported, string(jose.ES256))
	c.mu.Unlock()
	for i, address := range found.AuthorizationServers {
		// The first one is used, and all must be addresses of authorization servers.
		if i > 0 && strings.HasPrefix(address, "https://") {
			continue
		}
		if err := c.checkAddress("an authorization server", address); err != nil {
			return err
		}
	}
	want := c.server.String()
	if at.Path == resourceWellKnown && at.String() != c.named {
		want = origin(c.server)
	}
	if found.Resource == want {
		return nil
	}
	// Without its metadata the server's own origin is asked. That is no other one than the
	// metadata names where a server only writes its own address differently.
	resource, err := url.Parse(found.Resource)
	if err == nil && origin(resource) == origin(c.server) && len(found.AuthorizationServers) > 0 {
		if named, err := url.Parse(found.AuthorizationServers[0]); err == nil && origin(named) == origin(c.server) {
			return nil
		}
	}
	return fmt.Errorf("its resource metadata is that of another resource, %s (RFC 9728, 3.3)", shown(found.Resource))
}

// shown returns an address as a message has it: without parameters, which may be secret.
func shown(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return transports.Printable([]byte(address), 200)
}

func origin(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }
