package schema

import (
	"strings"
	"testing"
)

// Check applies the rules of a file to a server that is not in one yet.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		server Server
		want   string // empty: no error
	}{
		"stdio":           {Server{Name: "a", Transport: Stdio, Command: "x"}, ""},
		"a reference":     {Server{Name: "a", URL: "${BASE}/mcp", Headers: map[string]string{"A": "${TOKEN}"}}, ""},
		"a bad name":      {Server{Name: "A_b", Command: "x"}, "invalid server name"},
		"no address":      {Server{Name: "a", URL: "ftp://a.test"}, "not an http or https address"},
		"command and url": {Server{Name: "a", Command: "x", URL: "https://a.test"}, "url: this key does not go with transport stdio"},
		"a bad header":    {Server{Name: "a", URL: "https://a.test", Headers: map[string]string{"a b": "x"}}, "invalid header name"},
		"a bad variable":  {Server{Name: "a", Command: "x", Env: map[string]string{"A=B": "x"}}, "invalid variable name"},
		"a blank id":      {Server{Name: "a", URL: "https://a.test", Auth: &Auth{ClientID: " "}}, "client_id: this is empty"},
		"nothing":         {Server{Name: "a"}, "nothing says how to reach this server"},
	} {
		err := c.server.Check()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), ":0:")):
			t.Errorf("%s: got %v, want %q without a position", name, err, c.want)
		}
	}
}
