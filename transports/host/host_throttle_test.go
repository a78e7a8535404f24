package host

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The answers to the messages of one read are limited if the host does not read.
func TestHostThatDoesNotReadAsksForMuchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		taken := 0
		stdio := NewStdio(in, out, nil)
		host := NewSession("h1", stdio, Options{
			Control: mcp.NewServer(&mcp.Implementation{Name: "x"}, nil),
			HandleRequest: func(r *Request) {
				taken++
				r.Reply(json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`), nil)
			},
			HandleNotification: func(string, json.RawMessage) {},
		})
		served := make(chan error, 1)
		go func() { served <- stdio.Serve(t.Context(), host) }()
		_, _ = io.WriteString(stdin, `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
		if _, err := io.ReadFull(stdout, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		var calls strings.Builder
		for n := range 100 {
			fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", n)
		}
		_, _ = io.WriteString(stdin, calls.String())
		synctest.Wait()
		if most := stdioMaxUnread>>20 + 8; taken > most {
			t.Errorf("%d requests were answered with a MiB each, want at most %d", taken, most)
		}
		stdout.Close() // nobody will read any more
		<-served
		in.Close()
		stdin.Close()
	})
}
