//go:build e2e

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestLoginIsOfferedToHostsThatShowPages(t *testing.T) {
	t.Parallel()
	for name, args := range flavours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, as := protected(t, mcptest.AuthOptions{Scopes: []string{"read"}}, args...)
			p := &person{action: "accept"}
			host, _ := offered(t, e, p)
			host.Initialize(handshake, showsPages)
			contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `"structuredContent":{"text":"hi"}`)
			done := host.WaitMethod("notifications/elicitation/complete", 1)
			if got := string(done.Member("elicitationId")); p.count() != 1 || got != quote(p.ids[0]) {
				t.Errorf("asked %d times, %s is complete", p.count(), got)
			}
			// The login is revoked.
			as.Revoke()
			contains(t, use(host, "web/echo", `{"text":"again"}`).Raw, `"structuredContent":{"text":"again"}`)
			if p.count() != 2 || as.Count("authorize") != 2 {
				t.Errorf("asked %d times, %d logins", p.count(), as.Count("authorize"))
			}
			noSecretIn(t, as, host.Stderr(), map[string]string{"host": strings.Join(host.Lines(), "\n")})
		})
	}
}

// A host of the stateless era gets the question in a result, and calls again.
func TestLoginIsOfferedInAResult(t *testing.T) {
	t.Parallel()
	for name, args := range flavours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, as := protected(t, mcptest.AuthOptions{Scopes: []string{"read"}}, args...)
			host, _ := offered(t, e, &person{})
			call := func(tool string, input string, more ...string) mcptest.Message {
				return host.Call("tools/call", useParams(tool, input, append(more, mcptest.ModernMeta(showsPages))...))
			}
			for n, text := range []string{"hi", "again"} {
				input := fmt.Sprintf(`{"text":%q}`, text)
				m := call("web/echo", input)
				page := pageIn(t, m)
				// It may call again before its user has logged in.
				next := host.Go("tools/call", useParams("web/echo", input, accepted(m, "accept"), mcptest.ModernMeta(showsPages)))
				mcptest.Browse(t, page)
				contains(t, next.Wait().Raw, fmt.Sprintf(`"structuredContent":{"text":%q}`, text), `"resultType":"complete"`)
				if got := as.Count("authorize"); got != n+1 {
					t.Errorf("%d logins, want %d", got, n+1)
				}
				as.Revoke()
			}
			counts(t, host, "elicitation/create", 0)
			counts(t, host, "notifications/elicitation/complete", 0)
			noSecretIn(t, as, host.Stderr(), map[string]string{"host": strings.Join(host.Lines(), "\n")})
		})
	}
}
