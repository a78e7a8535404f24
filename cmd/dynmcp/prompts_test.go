package main_test

import "testing"

// Transcripts of package aggregator have the rest of prompts, completion and logging.

func TestFailureToSetTheLevelIsOnlyLogged(t *testing.T) {
	t.Parallel()
	bad, good := fake(t, "bad", "-fault", "noresult", "-fault-on", "logging/setLevel"), fake(t, "good")
	host := serve(t, bad, good)
	if m := host.Call("logging/setLevel", `{"level":"error"}`); m.Error != nil {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, host.WaitStderr("setLoggingLevel failed"), "upstream=bad")
	good.WaitFor("logging/setLevel error", 1)
}
