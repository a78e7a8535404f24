package main_test

import "testing"

// superset are the capabilities while a server is unknown.
const superset = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`

func TestMethodsThatNoServerHasAreRefused(t *testing.T) {
	t.Parallel()
	host := serve(t,
		fake(t, "a", "-no", "resources,prompts,logging,completions"),
		deferred(t, "b", "Later", "-no", "resources,prompts,logging,completions"))
	requests := map[string]string{
		"resources/list":           `{}`,
		"resources/templates/list": `{}`,
		"resources/read":           `{"uri":"fake://a/text"}`,
		"resources/subscribe":      `{"uri":"fake://a/text"}`,
		"prompts/list":             `{}`,
		"prompts/get":              `{"name":"greet"}`,
		"logging/setLevel":         `{"level":"info"}`,
		"completion/complete":      `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"x"}}`,
	}
	for _, list := range []string{"resources/list", "resources/templates/list", "prompts/list"} {
		if m := host.Call(list, nil); m.Error != nil {
			t.Errorf("%s while b is not known: got %s", list, m.Raw)
		}
	}
	load(host, "b")
	for method, params := range requests {
		if m := host.Call(method, params); m.Code() != -32601 {
			t.Errorf("%s: got %s, want an error -32601", method, m.Raw)
		}
	}
}
