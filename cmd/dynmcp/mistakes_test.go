package main_test

import (
	"strings"
	"testing"
)

// Mistakes of models in calls: what is understood, and how it is reported.

func TestMistakesInTheInputAreCorrected(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"))
	for _, name := range []string{"arguments", "args", "input", "params"} {
		for _, input := range []string{`{"n":1.0}`, quote(`{"n":1.0}`)} {
			m := host.Tool("use_tool", `{"tool_name":"alpha/echo",`+quote(name)+`:`+input+`}`)
			if got := m.Text(); got != `{"n":1.0}` {
				t.Errorf("%s: the upstream got %s", name, got)
			}
		}
		contains(t, host.Tool("use_tool", `{"tool_name":"alpha/echo",`+quote(name)+`:[1]}`).Text(), quote(name)+" must be an object")
	}
	m := use(host, "alpha/big", `{"bytes":"3"}`)
	if m.IsError() {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, string(m.Member("_meta", "dynmcp/changedInput")), `bytes: the string \"3\" became the number 3`)
	if m := use(host, "alpha/big", `{"bytes":3}`); m.Member("_meta", "dynmcp/changedInput") != nil {
		t.Errorf("got %s", m.Raw)
	}
	// An input without such a schema is not changed.
	checkEcho(t, host, "alpha/echo", `{"bytes":"3"}`)
}

func TestComplaintAboutTheInputBringsItsSchemaOnce(t *testing.T) {
	t.Parallel()
	const wrong = `{"content":[{"type":"text","text":"Input validation error: n is a required property","x":1.0}],"isError":true}`
	complain := `{"result":` + wrong + `}`
	host, other := serve(t, fake(t, "alpha")), serve(t, fake(t, "alpha"))
	m := use(host, "alpha/raw", complain)
	begins := strings.TrimSuffix(wrong, `],"isError":true}`) + `,{"type":"text","text":"Input schema of alpha/raw, which tool_input has to fit:\n{\"`
	if got := string(m.Result); !strings.HasPrefix(got, begins) || !strings.HasSuffix(got, `}"}],"isError":true}`) {
		t.Errorf("got %s, want %s…", got, begins)
	}
	if got := string(use(host, "alpha/raw", complain).Result); got != wrong {
		t.Errorf("the second time: got %s", got)
	}
	contains(t, use(other, "alpha/raw", complain).Raw, "Input schema of alpha/raw")
	for _, other := range []string{
		`{"content":[{"type":"text","text":"no such file"}],"isError":true}`,
		`{"content":[{"type":"text","text":"Input validation error in line 3 of your program"}]}`,
		`{"content":[{"type":"text","text":"Input validation error"}],"isError":false}`,
		`{"content":{"odd":"validation error"},"isError":true}`,
	} {
		if got := string(use(host, "alpha/raw", `{"result":`+other+`}`).Result); got != other {
			t.Errorf("got %s, want %s", got, other)
		}
	}

	const fail = `{"code":-32602,"message":"n <is> missing","data":{"f":1.0}}`
	m = use(host, "alpha/fail", fail)
	contains(t, string(m.Error), `"message":"n <is> missing\nInput schema of alpha/fail, which tool_input has to fit:\n{`, `"data":{"f":1.0}`)
	lacks(t, string(use(host, "alpha/fail", fail).Error), "Input schema")
	lacks(t, string(use(host, "alpha/fail", `{"code":-32000,"message":"other"}`).Error), "Input schema")
}
