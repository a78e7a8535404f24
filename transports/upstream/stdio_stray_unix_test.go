//go:build unix

package upstream

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// The failure of a program that is no server shows the first line of its stdout, however it ends.
func TestStdioIsNoServer(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		"cat":                            `its first line was "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"`,
		"echo hello":                     `its first line was "hello" (it exited with status 0)`,
		"echo usage: tool serve; exit 2": `its first line was "usage: tool serve" (it exited with status 2)`,
		"echo; echo second":              `its first line was "second"`,
		"echo the key is hunter22":       `its first line was "the key is [redacted]"`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			secrets := &redact.Redactor{}
			secrets.Add("hunter22")
			_, err := tryDial(t, schema.Server{Name: "up", Transport: schema.Stdio, Command: "sh", Args: []string{"-c", script}},
				ConnOptions{HandshakeOnly: true, Redact: secrets})
			f := wantFailure(t, err, transports.CodeStartFailed, transports.NotSent)
			if !strings.Contains(f.Error(), "it does not speak MCP: "+says) {
				t.Errorf("got %v, want %s", f, says)
			}
		})
	}
	for name, script := range map[string]string{
		"silent":   "exit 3",
		"banner":   "echo Starting…; exec " + mcptest.Fake(t) + " -fault fail-init",
		"complain": "echo no key >&2; exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tryDial(t, schema.Server{Name: "up", Transport: schema.Stdio, Command: "sh", Args: []string{"-c", script}}, ConnOptions{HandshakeOnly: true})
			if err == nil || strings.Contains(err.Error(), "does not speak MCP") != (name == "banner") {
				t.Errorf("got %v", err)
			}
		})
	}
	mustEcho(t, dial(t, schema.Server{Name: "up", Transport: schema.Stdio, Command: "sh", Args: []string{"-c", "echo Starting…; exec " + mcptest.Fake(t)}}, ConnOptions{}))
}
