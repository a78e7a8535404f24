package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// If one of many hosts does not read, its senders do not wait, and its session ends when far too
// much is queued.
func TestOneOfManyThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		var asked []*Request
		edge := NewConn(ours, &wire.Cork{})
		host := NewSession("h1", edge, SessionOptions{
			Control:            mcp.NewServer(&mcp.Implementation{Name: "x"}, nil),
			HandleRequest:      func(r *Request) { asked = append(asked, r) },
			HandleNotification: func(string, json.RawMessage) {},
		})
		served := make(chan error, 1)
		go func() { served <- edge.Serve(t.Context(), host) }()
		fmt.Fprintln(theirs, initialize("2025-11-25"))
		if _, err := bufio.NewReader(theirs).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		const calls = connMaxUnread>>20 + 10
		var lines strings.Builder
		for n := range calls {
			fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", n)
		}
		if _, err := io.WriteString(theirs, lines.String()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(asked) != calls {
			t.Fatalf("%d calls were accepted, want %d", len(asked), calls)
		}
		result := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
		for _, r := range asked {
			edge.AwaitRoom()     // as the reader of an upstream does
			r.Reply(result, nil) // if one of the two blocked, the test would deadlock
		}
		if err := <-served; !errors.Is(err, wire.ErrStalled) || !strings.Contains(err.Error(), "128 MB wait for it") {
			t.Errorf("the session ended with %v", err)
		}
		if _, err := theirs.Write([]byte("\n")); err == nil {
			t.Error("the connection is open")
		}
	})
}
