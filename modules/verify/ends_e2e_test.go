//go:build e2e

package verify

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
)

// reported returns what a verifier of one server reports, and on a terminal as its stderr.
func reported(ctx context.Context, t *testing.T, wait, within time.Duration, args ...string) (out, shown string, err error) {
	fake := mcptest.Fake(t)
	for _, variable := range []string{"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME", "LOCALAPPDATA", "APPDATA"} {
		t.Setenv(variable, t.TempDir())
	}
	var stdout, stderr bytes.Buffer
	v := &verifier{surfaces: []string{schema.ExposeDirect}, wait: wait, within: within}
	v.Cfg = schema.Single(fake, append([]string{"-bare"}, args...))
	v.Out, v.ErrOut = &terminal.Writer{W: &stdout}, &terminal.Writer{W: &stderr, Interactive: true}
	err = v.run(ctx, nil, false)
	return stdout.String(), stderr.String(), err
}

func wants(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, one := range want {
		if !strings.Contains(got, one) {
			t.Errorf("no %q in:\n%s", one, got)
		}
	}
}

var (
	crash   = tool("crash", "")
	forever = tool("sleep", `"ms":{"examples":[0]}`)
)

// The report says who ended a connection, on either side.
func TestReportSaysWhoEnded(t *testing.T) {
	got, _, err := reported(inProgram(t), t, 20*time.Second, time.Minute, "-tool", crash)
	if err != nil {
		t.Error(err)
	}
	wants(t, got, "handshake, directly: no answer from the server: it exited with status 3\n",
		"handshake, behind dynmcp, direct: dynmcp says: fakemcp: it exited with status 3 (")
}

// A wait of two seconds is named, and a terminal shows the step meanwhile.
func TestReportNamesTimeout(t *testing.T) {
	got, shown, err := reported(inProgram(t), t, 2*time.Second, time.Minute, "-tool", forever)
	if err != nil {
		t.Error(err)
	}
	wants(t, got, "handshake, directly: no answer within the 2s of --timeout\n", "handshake, behind dynmcp, direct: no answer within the 2s of --timeout\n")
	wants(t, shown, "\r\x1b[Kcomparing fakemcp (1 of 1): handshake, direct")
}

// Once the time of all servers is over, the report has what was compared, and names the rest.
func TestBoundInSum(t *testing.T) {
	began := time.Now()
	got, _, err := reported(inProgram(t), t, time.Minute, 2*time.Second, "-era", "both", "-tool", forever)
	if took := time.Since(began); err == nil || took > 30*time.Second {
		t.Errorf("it took %v and returned %v", took, err)
	}
	wants(t, got, "the 2s of --within are over\nnot compared: handshake, stateless\n")
}

func TestInterruptIsReported(t *testing.T) {
	ctx, cancel := context.WithTimeout(inProgram(t), 2*time.Second)
	defer cancel()
	got, _, err := reported(ctx, t, time.Minute, time.Minute, "-tool", forever)
	if !errors.Is(err, cli.ErrInterrupted) {
		t.Error(err)
	}
	wants(t, got, "interrupted\nnot compared: handshake, stateless\n")
}
