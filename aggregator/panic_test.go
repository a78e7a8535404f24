package aggregator

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// booming is a tool's schema that cannot be shown.
type booming struct{}

func (booming) ShowInput(*catalog.Tool) string { panic("boom") }

// A request whose goroutine panics, or whose answer causes a panic when it arrives, is
// answered with the panic, and the log says where it was.
func TestPanicIsTheAnswer(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	agg, err := New(schema.Single("up", nil), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 1)
	request := func() *host.Request {
		return &host.Request{Method: "tools/call", Respond: func(_ *host.Request, _ json.RawMessage, err error) { answers <- err }}
	}
	wantInternal := func() {
		t.Helper()
		var e *wire.Error
		if err := <-answers; !errors.As(err, &e) || e.Code != wire.CodeInternal || !strings.Contains(e.Message, "boom") {
			t.Errorf("got %v", err)
		}
	}
	for range 3 { // the first has not ended the group
		r := request()
		agg.work.Answer(r, func() { panic("boom") })
		wantInternal()
	}
	u := &lazy.Upstream{Server: schema.Server{Name: "up"}}
	r := request()
	c := callOf(&forward.Call{Env: &agg.calls, Server: agg.fleet.Of(u)}, &sessions.Session{}, r)
	c.BeginSending(r, nil, func() {})
	c.Route.Input = booming{}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the connection is not told")
			}
		}()
		c.Answered(nil, &wire.Error{Code: wire.CodeInvalidParams})
	}()
	wantInternal()
	agg.Close()
	if got := log.String(); strings.Count(got, "msg=panic") != 3 || !strings.Contains(got, "panic_test.go") {
		t.Errorf("got %s", got)
	}
}
