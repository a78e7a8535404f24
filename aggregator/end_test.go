package aggregator

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/modules/policy/rules"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// endlessLogin is a login that ends with its context, and notes when.
type endlessLogin struct{ ended *time.Time }

func (endlessLogin) For(schema.Server, string) upstream.Login { return upstream.Login{} }

func (endlessLogin) Entries(string) func(schema.Server) (schema.Server, error) {
	return func(s schema.Server) (schema.Server, error) { return s, nil }
}

func (endlessLogin) Reaches() bool { return false }

func (l endlessLogin) LogIn(ctx context.Context, _ schema.Server, _ string, show func(string)) error {
	show("https://login.example.com/")
	<-ctx.Done()
	*l.ended = time.Now()
	return ctx.Err()
}

// A login that was offered to a session ends with the session.
func TestEndOfASessionEndsItsLogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var ended time.Time
		agg := newQuiet(t, Options{Logins: endlessLogin{&ended}})
		defer agg.Close()
		s, peer := join(agg, "")
		s.Persistent = true
		r := &host.Request{Method: "tools/call", Era: transports.Handshake}
		if o, err := agg.offers.For(s.LoginOwner(), r, agg.config().Servers[0], "", "log in", peer); o == nil || err != nil {
			t.Fatalf("got the offer %v, %v", o, err)
		}
		synctest.Wait()
		s.end()
		synctest.Wait()
		if ended.IsZero() || !ended.Equal(began) {
			t.Errorf("the login went on after the end of its session (%v)", ended)
		}
	})
}

// allowing is a host whose user allows a tool for the session.
type allowing struct{ noHost }

func (allowing) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept","content":{"allow":"session"}}`), nil
	}
}

// What a person allowed for a session is forgotten when the session ends.
func TestEndOfASessionEndsItsPermits(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	s, _ := join(agg, "")
	s.Persistent = true
	q := &permit.Question{Of: s.LoginOwner(), Persistent: true, Server: "up", Tool: "pay", Rules: &rules.Rules{}, Arguments: json.RawMessage(`{}`)}
	if err := q.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := agg.judge.Permits.Ask(t.Context(), allowing{}, q); err != nil {
		t.Fatal(err)
	}
	if _, ok := agg.judge.Permits.Answered(q); !ok {
		t.Fatal("the answer does not last for the session")
	}
	s.end()
	if _, ok := agg.judge.Permits.Answered(q); ok {
		t.Error("the answer is kept after the end of its session")
	}
}

// connect connects one more host by ServeConn, and returns it with the function that ends its
// session as the host's own end does.
func (st *stage) connect() (h *actor, end func()) {
	ctx, cancel := context.WithCancelCause(st.t.Context())
	ours, theirs := net.Pipe()
	h = newActor([]string{"host", "2025-11-25", `{}`})
	h.enter(theirs)
	st.running.Go(func() { h.listen(theirs) })
	st.running.Go(func() { _ = st.agg.ServeConn(ctx, ours) })
	h.introduce()
	settle(h)
	return h, func() { cancel(host.ErrEndedByHost) }
}

// A host that ends its session while its call waits for the roots of another one is told that,
// and not that dynmcp ends.
func TestEndOfASessionWhileRootsAreAwaited(t *testing.T) {
	onStage(t, `
-- setup --
host here 2025-11-25 {"roots":{}}
upstream 2025-11-25 {"tools":{}}
-- upstream tools/list --
{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
`, func(t *testing.T, st *stage) {
		h, end := st.connect()
		call := h.message(`{"id":1,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo"}}}`)
		st.hosts[0].send(call)
		settle(st.upstreams[0])
		st.upstreams[0].send(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
		settle(st.hosts[0])
		h.send(call)
		settle(h)
		end()
		time.Sleep(3 * time.Second)
		if got := settle(h); !strings.Contains(string(got[0].Result), host.ErrEndedByHost.Error()) {
			t.Errorf("the call was answered with %s", got[0].Result)
		}
	})
}

// So is a host that ends its session while its request waits for a server to start.
func TestEndOfASessionWhileAServerStarts(t *testing.T) {
	t.Parallel()
	onStage(t, `
-- setup --
host here 2025-11-25 {}
upstream scripted 2025-11-25 {"tools":{}}
-- config --
"startup_wait":"1m"
`, func(t *testing.T, st *stage) {
		h, end := st.connect()
		h.send(h.message(`{"id":1,"method":"tools/call","params":{"name":"discover_tool","arguments":{}}}`))
		settle(h)
		end()
		time.Sleep(3 * time.Second)
		if got := settle(h); !strings.Contains(string(got[0].Error), host.ErrEndedByHost.Error()) {
			t.Errorf("the call was answered with %s", got[0].Error)
		}
	})
}
