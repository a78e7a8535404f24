package main_test

import (
	"slices"
	"testing"
)

// Prompts, completion and logging pass by name; prompts that two servers list have the server in it.

func TestPromptsAndCompletionsGoToTheOwner(t *testing.T) {
	t.Parallel()
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	host, want := serve(t, alpha, beta), direct(t, "beta")
	for _, params := range []string{
		`{"name":"beta.greet","arguments":{"who":"\u00e9 é","n":"1.0"},"x-more":1e2}`,
		`{"name":"beta.greet"}`,
	} {
		if got, want := host.Call("prompts/get", params), want.Call("prompts/get", params); string(got.Result) != string(want.Result) {
			t.Errorf("%s: got\n%s\nwant\n%s", params, got.Raw, want.Result)
		}
	}
	for _, ref := range []string{
		`{"type":"ref/prompt","name":"beta.greet"}`,
		`{"type":"ref/resource","uri":"fake://beta/item/{id}"}`,
		`{"uri":"fake://beta/text","type":"ref/resource","x":1.0}`,
	} {
		params := `{"ref":` + ref + `,"argument":{"name":"who","value":"wo\u00e9"}}`
		if got, want := host.Call("completion/complete", params), want.Call("completion/complete", params); string(got.Result) != string(want.Result) {
			t.Errorf("%s: got\n%s\nwant\n%s", ref, got.Raw, want.Result)
		}
	}
	if alpha.Count("prompts/get")+alpha.Count("completion/complete") != 0 || beta.Count("prompts/get beta.greet") != 2 || beta.Count("completion/complete") != 3 {
		t.Errorf("got %q and %q", alpha.Events(), beta.Events())
	}
}

func TestSamePromptOfTwoServersIsWarnedAbout(t *testing.T) {
	t.Parallel()
	first, second := fake(t, "first", "-prompt", "same"), fake(t, "second", "-prompt", "same", "-prompt", "other")
	host := serve(t, first, second)
	contains(t, host.WaitStderr("prompt name collision"), "same", "first", "second")
	if got := names(host.Call("prompts/list", nil).Member("prompts"), "name"); !slices.Equal(got, []string{"first.same", "second.same", "other"}) {
		t.Errorf("got %q", got)
	}
	host.Call("prompts/get", `{"name":"second.same"}`)
	if first.Count("prompts/get") != 0 || second.Count("prompts/get same") != 1 {
		t.Errorf("got %q and %q", first.Events(), second.Events())
	}
}

func TestPromptChangesAreSeen(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"))
	next := host.Count(promptsChanged) + 1
	use(host, "alpha/add_prompt", `{"name":"new"}`)
	host.WaitMethod(promptsChanged, next)
	if got := names(host.Call("prompts/list", nil).Member("prompts"), "name"); !slices.Equal(got, []string{"alpha.greet", "new"}) {
		t.Errorf("got %q", got)
	}
	use(host, "alpha/remove_prompt", `{"name":"new"}`)
	host.WaitMethod(promptsChanged, next+1)
	if m := host.Call("prompts/get", `{"name":"new"}`); m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
}

func TestUnknownPromptsAndCompletionsAreRefused(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-no", "resources"))
	m := host.Call("prompts/get", `{"name":"nobody.greet"}`)
	if m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, m.Text(), "Unknown prompt: nobody.greet")
	for ref, want := range map[string]string{
		`{"type":"ref/prompt","name":"nobody"}`:          "Unknown prompt: nobody",
		`{"type":"ref/resource","uri":"fake://nobody/"}`: "Unknown resource: fake://nobody/",
		`{"type":"ref/other","name":"x"}`:                `Unsupported completion ref type: "ref/other"`,
		`{}`:                                             "Unsupported completion ref type",
	} {
		m := host.Call("completion/complete", `{"ref":`+ref+`,"argument":{"name":"who","value":"x"}}`)
		if m.Error == nil {
			t.Errorf("got %s", m.Raw)
		}
		contains(t, m.Text(), want)
	}
}

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

func TestUnknownLogLevelIsRefused(t *testing.T) {
	t.Parallel()
	alpha := fake(t, "alpha")
	host := serve(t, alpha)
	if m := host.Call("logging/setLevel", `{}`); m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
	if alpha.Count("logging/setLevel") != 0 {
		t.Error("it was passed on")
	}
}
