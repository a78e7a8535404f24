//go:build unix

package upstream

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports"
)

// A stopped child is killed with the processes that it started. The failure says why, and a new
// child works.
func TestStdioStopped(t *testing.T) {
	t.Parallel()
	server := fake(t)
	c := dial(t, server, ConnOptions{timing: timing{ping: 200 * time.Millisecond}})
	pid, child := number(t, c, "pid", "{}"), number(t, c, "spawn", `{"mode":"ignore-term"}`)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	setTimeout(c, 300*time.Millisecond)
	var err error
	for err == nil { // the child may take a moment to stop
		_, err = tool(t, c, "pid", "{}")
	}
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	waitFor(t, "the end", c.Done())
	if f := c.Loss(); f.Code != transports.CodeExited || !strings.Contains(f.Error(), "three pings") {
		t.Errorf("got %d %v", f.Code, f)
	}
	mcptest.WaitGone(t, pid, child)
	mustEcho(t, dial(t, server, ConnOptions{}))
}

// number calls a tool that returns a number.
func number(t *testing.T, c *Conn, name, arguments string) int {
	t.Helper()
	result, err := tool(t, c, name, arguments)
	if err != nil {
		t.Fatal(err)
	}
	return textNumber(t, result)
}
