//go:build e2e

package main_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// What a replica ran that was killed runs on another, and not before
// nothing is left of it.
func TestServersOfAReplicaThatWasKilledRunElsewhere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no guard here")
	}
	t.Parallel()
	inACluster(t, serversOfAReplicaThatWasKilled)
}

func serversOfAReplicaThatWasKilled(c *testCluster) {
	alpha := fake(c.t, "alpha")
	c.push(alpha)
	a, b := c.replica("a").serving(), c.replica("b").serving()
	before := c.process(useOnce(a.once(), "alpha/pid", `{}`))
	c.process(useOnce(b.once(), "alpha/pid", `{}`))
	killed, staying := c.holder("alpha", a, b)
	lost := killed.host()
	killed.Kill()
	// A call is lost that is sent before its end is noticed.
	var after int
	mcptest.Eventually(c.t, "the server runs elsewhere", func() (ok bool) {
		n, err := strconv.Atoi(useOnce(staying.once(), "alpha/pid", `{}`).Text())
		after = n
		return err == nil
	})
	if after == before || mcptest.Alive(before) {
		c.errorf("process %d answers after %d, which lives: %t", after, before, mcptest.Alive(before))
	}
	if n := alpha.Count("start"); n != 2 {
		c.errorf("the server was started %d times", n)
	}
	moved := mcptest.NewClient(c.t, staying.url+"/mcp")
	moved.Session = lost.Session
	moved.Header.Set("Mcp-Protocol-Version", handshake)
	if r := moved.Post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); r.Status != 404 {
		c.errorf("a session of a replica that is gone: %d %s", r.Status, r.Body)
	}
}
