package main_test

import "testing"

// A server that forgets its sessions does not count as crashing.
func TestForgottenSessionsAreNotPaused(t *testing.T) {
	t.Parallel()
	e := remote(t, "away", "-fault", "h404", "-fault-times", "8")
	host := serve(t, e)
	text := ""
	for range 9 {
		if text = use(host, "away/echo", `{}`).Text(); text == "{}" {
			break
		}
		contains(t, text, "forgot the session")
		lacks(t, text, "next attempt")
	}
	if got := e.Count("fault h404"); text != "{}" || got != 8 {
		t.Errorf("got %s after %d forgotten sessions, want it to work after 8", text, got)
	}
}
