package aggregator

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dynmcp/lazy"
	"dynmcp/schema"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

// What comes on a call's own stream, which HTTP has, is for the host that made
// the call: another host must not read its log.
func TestOwnStreamIsForItsHost(t *testing.T) {
	agg, err := New(schema.Single("up", nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer agg.Close()
	var mine, other listener
	session := agg.sessions.open(principal{}, agg.snapshot())
	agg.sessions.attach(session, &mine)
	agg.sessions.attach(agg.sessions.open(principal{}, agg.snapshot()), &other)
	p := agg.peerOf(&lazy.Upstream{Server: schema.Server{Name: "up"}})
	call := func(params string, modern bool) *forwardedCall {
		request := host.NewRequest("tools/call", json.RawMessage(params), &mine, func(json.RawMessage, error) {})
		if modern {
			request.Era = transports.Stateless
		}
		return &forwardedCall{agg: agg, session: session, request: request, peer: p}
	}
	for _, f := range []*forwardedCall{
		call(`{}`, false),
		call(`{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`, true),
		call(`{"_meta":{}}`, true), // wants no log
	} {
		f.Notify("notifications/message", json.RawMessage(`{"data":1.0}`))
		f.Notify("notifications/x-unknown", json.RawMessage(`{"n":1.0}`))
	}
	log, unknown := `notifications/message {"data":1.0}`, `notifications/x-unknown {"n":1.0}`
	if diff := cmp.Diff([]string{log, unknown, log, unknown, unknown}, mine.got); diff != "" {
		t.Errorf("the host of the calls (-want +got):\n%s", diff)
	}
	if len(other.got) > 0 {
		t.Errorf("another host got %q", other.got)
	}
}
