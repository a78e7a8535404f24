package main_test

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The tree of tools over HTTP.
func TestTreeOverHTTP(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, document([]entry{deferred(t, "git", "Versions.")})), "--token", "mysecret")
	for _, c := range []struct {
		path, body string
		status     int
		want       []string
	}{
		{"/meta_tree", `{"path": "/"}`, 200, []string{`"path":"/git"`, `"type":"node"`}},
		{"/meta_tree", `{"path": "/git"}`, 200, []string{`"/git/echo"`, `"tool"`}},
		{"/meta_tree", `{"path": "/git/echo"}`, 400, []string{`"error"`, "is a tool"}},
		{"/meta_tree", `{"path": "/nothing"}`, 404, []string{`"error"`}},
		{"/meta_desc", `{"path": "/git/echo"}`, 200, []string{`"args_schema"`}},
		{"/meta_desc", `{}`, 400, []string{`"error"`}},
		{"/meta_call", `{"path": "/git/echo", "args": {"message": "Hello"}}`, 200, []string{`"content"`, `Hello`}},
		{"/meta_call", `{"path": "/git", "args": {}}`, 400, []string{"is a node"}},
		{"/meta_call", `{"path": "/git/nothing", "args": {}}`, 404, []string{`"error"`}},
		{"/meta_call", `{"path": "/git/crash", "args": {}}`, 502, []string{`"error"`, `"code":5102`}},
		{"/meta_call", `nonsense`, 400, []string{`"error"`}},
		{"/meta_call", `[]`, 400, []string{`"error"`}},
	} {
		status, _, text := web.send("POST", c.path, c.body, "Authorization", "Bearer mysecret")
		if status != c.status {
			t.Errorf("%s %s: got %d %s", c.path, c.body, status, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %s: got %s, want %s in it", c.path, c.body, text, want)
			}
		}
	}
	if status, _, _ := web.send("POST", "/meta_tree", `{"path": "/"}`); status != 401 {
		t.Errorf("without the secret: %d", status)
	}
}
