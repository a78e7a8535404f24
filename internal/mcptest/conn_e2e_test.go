//go:build e2e

package mcptest_test

import (
	"bufio"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// TestTalkNeedsNoProcess sends and answers requests in a synctest bubble, in which every wait is for
// the other end.
func TestTalkNeedsNoProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := mcptest.Pipe()
		c := mcptest.Talk(t, near, nil)
		p := c.Go("x/y", `{"f":1.0}`)
		lines := bufio.NewScanner(far)
		lines.Scan()
		if got, want := lines.Text(), `{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"f":1.0}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		fmt.Fprintf(far, "%s\n%s\n", `{"id":"q","method":"ping"}`, `{"id":1,"result":[1e2]}`)
		if got := string(p.Wait().Result); got != "[1e2]" {
			t.Errorf("got %s", got)
		}
		if lines.Scan(); lines.Text() != `{"jsonrpc":"2.0","id":"q","result":{}}` {
			t.Errorf("got %s", lines.Text())
		}
		if err := far.Close(); err != nil {
			t.Error(err)
		}
		c.WaitEnd()
	})
}

func TestPipeEnds(t *testing.T) {
	a, b := mcptest.Pipe()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
	if _, err := b.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("got %v, want a closed pipe", err)
	}
}
