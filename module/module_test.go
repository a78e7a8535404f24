package module

import "testing"

type anyTrust struct{ Trust }

// Requests of dynmcp's own hear no module, and see no tool that hosts may not see.
func TestShownKeepsWhatHidesTools(t *testing.T) {
	ctx := Shown(With(t.Context(), []Module{{Start: func(Run) (Part, error) { return nil, nil }}, {Trust: anyTrust{}}}))
	if TrustOf(ctx) != (anyTrust{}) {
		t.Error("tools are shown that need approval")
	}
	for _, m := range Of(ctx) {
		if m.Start != nil {
			t.Error("a module is told of the requests")
		}
	}
}
