package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dynmcp/dynmcp/internal/wire"
)

type reply struct {
	result json.RawMessage
	err    error
}

// asking sends the host a request.
func asking(ctx context.Context, h *Session) chan reply {
	answered := make(chan reply, 1)
	go func() {
		result, err := h.Request(ctx, "roots/list", json.RawMessage(`{"f":1.0}`))()
		answered <- reply{result, err}
	}()
	return answered
}

func TestAskHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestHost(t, nil)
		if _, err := e.host.Request(t.Context(), "roots/list", nil)(); err == nil {
			t.Error("asked before initialize: no error")
		}
		e.begin("2025-11-25")
		for _, test := range []struct{ answer, want, err string }{
			{`{"jsonrpc":"2.0","id":ID,"result":{"n":1.0}}`, `{"n":1.0}`, ""},
			{`{"jsonrpc":"2.0","id":"ID","result":null}`, `null`, ""},
			{`{"jsonrpc":"2.0","id":ID.0,"result":{}}`, `{}`, ""},
			{`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"no","x":1.0}}`, "", `{"code":-1,"message":"no","x":1.0}`},
			{`{"jsonrpc":"2.0","id":ID,"result":"` + strings.Repeat("x", testMaxMessage) + `"}`, "", `{"code":5109,"message":"the host's answer is too large"}`},
		} {
			before := len(e.wait(1))
			answered := asking(t.Context(), e.host)
			question, err := wire.Parse([]byte(e.wait(before + 1)[before]))
			if err != nil || question.Method != "roots/list" || string(question.Params) != `{"f":1.0}` {
				t.Fatalf("got %s", question.Raw)
			}
			answer := strings.Replace(test.answer, "ID", string(question.ID), 1)
			e.say(answer, answer) // the second one answers no request
			got := <-answered
			var rpc *wire.Error
			if errors.As(got.err, &rpc) != (test.err != "") || rpc != nil && string(rpc.JSON()) != test.err || string(got.result) != test.want {
				t.Errorf("%.80s: got %s, %v", test.answer, got.result, got.err)
			}
		}
	})
}

func TestAskHostCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestHost(t, nil)
		e.begin("2025-11-25")
		ctx, cancel := context.WithCancel(t.Context())
		answered := asking(ctx, e.host)
		e.wait(2)
		cancel()
		if got := <-answered; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
		if got := e.wait(3)[2]; got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` {
			t.Errorf("got %s", got)
		}
	})
}

// Requests to a host fail when it has closed its input.
func TestAskHostThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halfClosePipe()
		e := testHostOn(t, near, near, far, SessionOptions{})
		e.begin("2025-11-25")
		answered := asking(t.Context(), e.host)
		e.wait(2)
		far.CloseWrite()
		if got := <-answered; !errors.Is(got.err, errHostGone) {
			t.Errorf("got %v", got.err)
		}
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if got := <-asking(t.Context(), e.host); !errors.Is(got.err, errHostGone) {
			t.Errorf("afterwards: got %v", got.err)
		}
	})
}
