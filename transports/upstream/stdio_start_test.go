package upstream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

func TestStdioFailsToStart(t *testing.T) {
	t.Parallel()
	for fault, says := range map[string]string{
		"exit-now":     "API_KEY is not set",
		"exit-on-init": "fatal: initialize",
		"fail-init":    "refused as asked",
		"bad-version":  "2099-01-01",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			_, err := tryDial(t, fake(t, "-fault", fault), ConnOptions{HandshakeOnly: true})
			f := wantFailure(t, err, transports.CodeStartFailed, transports.NotSent)
			if !strings.Contains(f.Text(), says) {
				t.Errorf("got %s, want it to say %q", f.Text(), says)
			}
		})
	}
	t.Run("hang-init", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := openWithHandshake(ctx, fake(t, "-fault", "hang-init"), ConnOptions{HandshakeOnly: true})
		wantFailure(t, err, transports.CodeTimeout, transports.NotSent)
	})
	t.Run("exit-on-discover", func(t *testing.T) {
		t.Parallel()
		server := fake(t, "-fault", "exit-on-discover")
		if _, err := tryDial(t, server, ConnOptions{}); !errors.Is(err, ErrProbe) {
			t.Errorf("got %v, want %v", err, ErrProbe)
		}
		mustEcho(t, dial(t, server, ConnOptions{HandshakeOnly: true}))
	})
}

func TestStdioCommandMissing(t *testing.T) {
	t.Parallel()
	for _, server := range []schema.Server{
		{Name: "up", Transport: schema.Stdio, Command: "there-is-no-such-command"},
		{Name: "up", Transport: schema.Stdio, Command: t.TempDir()},
		{Name: "up", Transport: schema.Stdio, Command: mcptest.Fake(t), Cwd: t.TempDir() + "/nowhere"},
	} {
		_, err := tryDial(t, server, ConnOptions{})
		wantFailure(t, err, transports.CodeStartFailed, transports.NotSent)
		if err := command.Check(server); err == nil {
			t.Errorf("Check of %q in %q: no error", server.Command, server.Cwd)
		}
	}
}
