package main_test

import "testing"

// The level of log messages goes to the servers. Transcripts of package aggregator have the rest of prompts,
// completion and logging.

func TestLogLevelGoesToEveryServerThatLogs(t *testing.T) {
	t.Parallel()
	alpha, quiet, beta := fake(t, "alpha"), fake(t, "quiet", "-no", "logging"), fake(t, "beta")
	later := deferred(t, "later", "Later")
	host := serve(t, alpha, quiet, beta, later)
	if m := host.Call("logging/setLevel", `{"level":"warning"}`); m.Error != nil {
		t.Fatal(m.Raw)
	}
	alpha.WaitFor("logging/setLevel warning", 1)
	beta.WaitFor("logging/setLevel warning", 1)
	load(host, "later")
	later.WaitFor("logging/setLevel warning", 1)
	if n := quiet.Count("logging/setLevel"); n > 0 {
		t.Errorf("the server without logging was told %d times", n)
	}
}

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
