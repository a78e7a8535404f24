//go:build e2e

package oauth

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
)

// The official TypeScript SDK, before and after its packages were split.
const (
	typescriptSDK1 = "@modelcontextprotocol/sdk@1.32.2"
	typescriptSDK2 = "@modelcontextprotocol/client@2.4.0"
)

// A sdkClient is a client of an official SDK. Its methods call the tool whoami, twice with an expiry of
// the access token in between if the address expire is given, and return what it said.
type sdkClient interface {
	direct(ctx context.Context, t *testing.T, server schema.Server, expire string) (string, error)
	through(ctx context.Context, t *testing.T, env, dynmcp []string, expire string) (string, error)
}

// clientOf returns the client of a server's auth as JSON has it, here and in OAuth; nil if there is none.
func clientOf(a *schema.Auth) map[string]string {
	switch {
	case a == nil:
		return nil
	case a.ClientSecret == "":
		return map[string]string{"client_id": a.ClientID}
	}
	return map[string]string{"client_id": a.ClientID, "client_secret": a.ClientSecret}
}

// A tsClient is testdata/client.mjs with a version of the TypeScript SDK.
type tsClient struct{ modules, version string }

func (c tsClient) direct(ctx context.Context, t *testing.T, server schema.Server, expire string) (string, error) {
	target := map[string]any{"url": server.URL}
	if a := clientOf(server.Auth); a != nil {
		target["client"] = a
	}
	return c.run(ctx, t, mcptest.Environ(t), target, expire)
}

func (c tsClient) through(ctx context.Context, t *testing.T, env, dynmcp []string, expire string) (string, error) {
	return c.run(ctx, t, env, map[string]any{"command": dynmcp[0], "args": dynmcp[1:]}, expire)
}

func (c tsClient) run(ctx context.Context, t *testing.T, env []string, target map[string]any, expire string) (string, error) {
	text, err := json.Marshal(target)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "node", "testdata/client.mjs", c.modules, c.version, expire, string(text))
	cmd.Env, cmd.Stderr = env, t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	var said string
	failed := errors.New("it says nothing")
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch what, rest, _ := strings.Cut(lines.Text(), " "); what {
		case "page":
			logInAt(t, rest)
		case "said":
			said, failed = rest, nil
		case "error":
			failed = errors.New(rest)
		}
	}
	return said, errors.Join(failed, cmd.Wait())
}

// A goClient is the client of the Go SDK.
type goClient struct{}

func (goClient) direct(ctx context.Context, t *testing.T, server schema.Server, expire string) (string, error) {
	back := make(chan url.Values, 1)
	callback := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { back <- r.URL.Query() }))
	defer callback.Close()
	config := auth.AuthorizationCodeHandlerConfig{
		RedirectURL: callback.URL + "/callback",
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			logInAt(t, args.URL)
			select {
			case q := <-back:
				return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
	if a := server.Auth; a == nil {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "client", RedirectURIs: []string{config.RedirectURL}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	} else {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: a.ClientID}
		if a.ClientSecret != "" {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: a.ClientSecret}
		}
	}
	handler, err := auth.NewAuthorizationCodeHandler(&config)
	if err != nil {
		return "", err
	}
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	return whoami(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: base}, OAuthHandler: handler}, expire)
}

func (goClient) through(ctx context.Context, t *testing.T, env, dynmcp []string, expire string) (string, error) {
	cmd := exec.CommandContext(ctx, dynmcp[0], dynmcp[1:]...)
	cmd.Env, cmd.Stderr = env, t.Output()
	return whoami(ctx, &mcp.CommandTransport{Command: cmd}, expire)
}

// whoami does in the Go SDK what testdata/client.mjs does.
func whoami(ctx context.Context, transport mcp.Transport, expire string) (string, error) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return "", err
	}
	var name string
	for _, tool := range tools.Tools {
		if strings.HasSuffix(tool.Name, "whoami") {
			name = tool.Name
		}
	}
	if name == "" {
		return "", errors.New("no tool whoami is listed")
	}
	var said []string
	for _, again := range []bool{false, true} {
		if again && expire == "" {
			break
		} else if again {
			if err := expireToken(ctx, expire); err != nil {
				return "", err
			}
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name})
		if err != nil {
			return "", err
		}
		text, ok := result.Content[0].(*mcp.TextContent)
		if !ok || result.IsError {
			return "", fmt.Errorf("the tool answers %v", result.Content)
		}
		said = append(said, text.Text)
	}
	return strings.Join(said, "; "), nil
}

// expireToken ends the access token that came last.
func expireToken(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

var loginPage = regexp.MustCompile(`https?://\S+response_type=code\S*`)

// dynmcpLogin logs in by the command line, and returns what that printed.
func dynmcpLogin(ctx context.Context, t *testing.T, env []string, config string) (printed string, err error) {
	cmd := exec.CommandContext(ctx, mcptest.Dynmcp(t), "login", "web", "--no-browser", "-c", config)
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		printed += lines.Text() + "\n"
		if page := loginPage.FindString(lines.Text()); page != "" {
			logInAt(t, page)
		}
	}
	return printed, cmd.Wait()
}

// unable says, by server and client, how the login of a direct client fails.
var unable = map[string]map[string]string{
	// The TypeScript SDK puts the secret into the Authorization header as it is, without the encoding of
	// RFC 6749, section 2.3.1, so that its "+" is a space.
	"a client with a secret": {
		"TypeScript 1": "client authentication failed",
		"TypeScript 2": "client authentication failed",
	},
	// The Go SDK takes metadata at the root only for a resource there, and without metadata it asks for no
	// scope, to which the user cannot consent here.
	"metadata at the root that no challenge names": {"Go": "missing required parameter 'code'"},
	// Nothing can: the operator must give a client ID.
	unregistered: {
		"TypeScript 1": "does not support dynamic client registration",
		"TypeScript 2": "does not support dynamic client registration",
		"Go":           "no configured client registration methods are supported",
	},
}

const unregistered = "no registration and no client ID"

// whoamiSays returns what whoami says of each server.
func whoamiSays(s shape) string {
	said := "ann with read"
	if s.Scope != "" {
		said = "ann with " + s.Scope
	}
	if s.NoRefresh {
		return said
	}
	return said + "; " + said // with the second token
}

// outcome is a cell of the table.
func outcome(said string, err error) string {
	if err != nil {
		return "fails: " + strings.TrimSpace(err.Error())
	}
	return said
}

// Clients of both official SDKs log in to the servers themselves, and call through dynmcp, which logged in
// before. A call through dynmcp has the result of the direct one, its scopes and its second token. Where
// the direct client cannot log in, dynmcp can, or it says what is missing.
func TestOfficialClientsDirectAndThrough(t *testing.T) {
	servers := append(protectedServers(), protected{unregistered, shape{Client: true}, nil})
	modules := npmModules(t, oidcProvider, typescriptSDK1, typescriptSDK2)
	clients := []struct {
		name string
		sdkClient
	}{
		{"TypeScript 1", tsClient{modules, "1"}},
		{"TypeScript 2", tsClient{modules, "2"}},
		{"Go", goClient{}},
	}
	bases := startProviders(t, modules, shapesOf(servers))
	program := mcptest.Dynmcp(t)
	for i, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 80*time.Second)
			defer cancel()
			entry := map[string]any{"url": bases[i] + "/mcp"}
			if a := clientOf(server.auth); a != nil {
				entry["auth"] = a
			}
			config := mcptest.Config(t, map[string]any{"mcp": map[string]any{"web": entry}, "expose": []string{"direct"}, "startup_wait": "60s"})
			env := mcptest.Environ(t)
			printed, failed := dynmcpLogin(ctx, t, env, config)
			expire := bases[i] + "/test/expire"
			if server.shape.NoRefresh {
				expire = ""
			}
			if server.name == unregistered {
				if failed == nil || !strings.Contains(printed, `write its id as "client_id" into "auth"`) {
					t.Errorf("dynmcp logs in: %v, and prints %s", failed, printed)
				}
			} else if failed != nil {
				t.Fatalf("dynmcp logs in: %v\n%s", failed, printed)
			}
			want := whoamiSays(server.shape)
			for _, client := range clients {
				direct := outcome(client.direct(ctx, t, schema.Server{URL: bases[i] + "/mcp", Auth: server.auth}, expire))
				why := unable[server.name][client.name]
				if why == "" && direct != want || !strings.Contains(direct, why) {
					t.Errorf("%s, direct: %s\nwant %q", client.name, direct, cmp.Or(why, want))
				}
				through := "not logged in"
				if failed == nil {
					through = outcome(client.through(ctx, t, env, []string{program, "-c", config}, expire))
					if through != want {
						t.Errorf("%s, through dynmcp: %s\nwant %s", client.name, through, want)
					}
				}
				t.Logf("%-12s | %-30s | %s", client.name, direct, through)
			}
		})
	}
}
