//go:build e2e

package call

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// fakeTerminal returns a writer to a terminal, and its output.
func fakeTerminal(width int) (*terminal.Writer, *bytes.Buffer) {
	var b bytes.Buffer
	return &terminal.Writer{W: &b, Interactive: true, Colour: true, Width: width}, &b
}

// callOver calls a tool with a terminal on stderr. answer plays the upstream: next returns the
// next received message, and send sends one.
func callOver(t *testing.T, ctx context.Context, answer func(next func() rpcLine, send func(format string, args ...any))) (json.RawMessage, string, error) {
	near, far := net.Pipe()
	conn := upstream.OpenStream(schema.Server{Name: "dynmcp"}, near, upstream.ConnOptions{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer far.Close()
		lines := bufio.NewReader(far)
		next := func() (m rpcLine) {
			line, err := lines.ReadBytes('\n')
			if err == nil {
				err = json.Unmarshal(line, &m)
			}
			if err != nil {
				t.Error(err)
			}
			return m
		}
		answer(next, func(format string, args ...any) { fmt.Fprintf(far, format+"\n", args...) })
	}()
	s, shown := fakeTerminal(80)
	result, err := callTool(ctx, conn, s, "some/tool", json.RawMessage(`{}`))
	<-ended
	conn.Close()
	return result, shown.String(), err
}

type rpcLine struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Meta struct {
			ProgressToken json.RawMessage
		} `json:"_meta"`
		RequestID json.RawMessage
	}
}

func TestCallShowsProgressOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result, shown, err := callOver(t, t.Context(), func(next func() rpcLine, send func(string, ...any)) {
			m := next()
			send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":4,"message":"step \u001b one"}}`, m.Params.Meta.ProgressToken)
			time.Sleep(time.Second)
			send(`{"jsonrpc":"2.0","id":%s,"result":{"n": 1.0}}`, m.ID)
		})
		if want := `{"n": 1.0}`; err != nil || string(result) != want {
			t.Errorf("got %s, %v, want %s", result, err, want)
		}
		if want := `calling some/tool: 25% step \u{1b} one`; !strings.Contains(shown, want) {
			t.Errorf("no %q on the terminal, which shows %q", want, shown)
		}
		if !bytes.HasSuffix([]byte(shown), []byte("\r\x1b[K")) {
			t.Errorf("the progress stays on the terminal: %q", shown)
		}
	})
}

func TestInterruptedCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		_, _, err := callOver(t, ctx, func(next func() rpcLine, send func(string, ...any)) {
			call := next()
			interrupt()
			if m := next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(call.ID) {
				t.Errorf("got %+v, want the cancel of %s", m, call.ID)
			}
		})
		if !errors.Is(err, cli.ErrInterrupted) {
			t.Errorf("got %v, want %v", err, cli.ErrInterrupted)
		}
	})
}
