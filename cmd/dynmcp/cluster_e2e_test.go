//go:build e2e

package main_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The servers of a killed replica start on another one, once nothing of them is left.
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
	before := c.process(useStateless(a.statelessHost(), "alpha/pid", `{}`))
	c.process(useStateless(b.statelessHost(), "alpha/pid", `{}`))
	killed, staying := c.holder("alpha", a, b)
	lost := killed.host()
	killed.Kill()
	// Calls fail until the end of the replica is noticed.
	var after int
	mcptest.Eventually(c.t, "the server runs elsewhere", func() (ok bool) {
		n, err := strconv.Atoi(useStateless(staying.statelessHost(), "alpha/pid", `{}`).Text())
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

// A replica that is asked to end hands over its servers, and no call fails.
func TestAReplicaThatEndsFailsNoCall(t *testing.T) {
	t.Parallel()
	inACluster(t, aReplicaThatEndsFailsNoCall)
}

func aReplicaThatEndsFailsNoCall(c *testCluster) {
	alpha := fake(c.t, "alpha")
	c.push(alpha)
	a, b := c.replica("a").serving(), c.replica("b").serving()
	before := c.process(useStateless(a.statelessHost(), "alpha/pid", `{}`))
	c.process(useStateless(b.statelessHost(), "alpha/pid", `{}`))
	ending, staying := c.holder("alpha", a, b)

	ctx, stop := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer stop()
	for range 3 {
		calls.Go(func() {
			h := staying.statelessHost()
			for n := 0; ctx.Err() == nil; n++ {
				if want := fmt.Sprintf(`{"n":%d}`, n); useStateless(h, "alpha/echo", want).Text() != want {
					c.errorf("call %d failed", n)
				}
				time.Sleep(2 * time.Millisecond) // leaves the processors to what starts and ends
			}
		})
	}
	ending.Signal(syscall.SIGTERM)
	if code := ending.Wait(); code != 0 {
		c.errorf("got exit status %d", code)
	}
	after := c.process(useStateless(staying.statelessHost(), "alpha/pid", `{}`))
	stop()
	calls.Wait()
	if after == before || mcptest.Alive(before) {
		c.errorf("process %d answers after %d, which lives: %t", after, before, mcptest.Alive(before))
	}
	// The first process ends before the second starts.
	var order []string
	for _, line := range alpha.Events() {
		if e, _, _ := strings.Cut(line, " "); e == "start" || e == "exit" {
			order = append(order, e)
		}
	}
	if got := strings.Join(order, " "); got != "start exit start" && got != "start start" { // the first was killed
		c.errorf("got %s", got)
	}
	c.shows("\n" + staying.name + "  ")
	if text := c.state(); strings.Contains(text, "\n"+ending.name+"  ") {
		c.errorf("a replica that has ended is shown: %s", text)
	}
}
