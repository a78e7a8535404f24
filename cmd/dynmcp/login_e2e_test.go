//go:build e2e

package main_test

import (
	"maps"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestLoginWhileAHostIsServed(t *testing.T) {
	t.Parallel()
	ways := maps.Clone(flavours)
	ways["legacy SSE, not said"] = flavours["legacy SSE"]
	for name, args := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, as := protected(t, mcptest.AuthOptions{Scopes: []string{"read"}}, args...)
			if name == "legacy SSE" {
				e = e.with("transport", "sse")
			}
			env := mcptest.Environ(t)
			config := mcptest.Config(t, document([]entry{e}))
			host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: env})
			host.Initialize(handshake, nil)
			for range 5 { // more often than a budget allows
				m := use(host, "web/echo", `{"text":"hi"}`)
				contains(t, m.Raw, `run \"dynmcp login web\"`)
				contains(t, m.Raw, `not_sent`)
			}
			contains(t, catalogue(t, host), "- web: Locked (run: dynmcp login web)")

			printed, err := login(t, env, "web", "-c", config)
			if err != nil {
				t.Fatalf("login: %v\n%s", err, printed)
			}
			contains(t, printed, "Logged in to web, with the scopes offline_access read.")
			contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, "hi")
			if name == "events" {
				contains(t, runVerb(t, env, 0, "ls", "-c", config), "oauth: logged in (expires in ")
			}
			lacks(t, catalogue(t, host), "dynmcp login")

			// An expired token is renewed without a person.
			as.Expire()
			contains(t, use(host, "web/echo", `{"text":"again"}`).Raw, "again")
			if got := as.Count("refresh"); got != 1 {
				t.Errorf("%d refreshes, want 1", got)
			}

			if out := runVerb(t, env, 0, "logout", "web", "-c", config); out != "Logged out of web.\n" || as.Count("revoke") != 2 {
				t.Errorf("logout: %d tokens revoked\n%s", as.Count("revoke"), out)
			}
			contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `run \"dynmcp login web\"`)
		})
	}
}
