package aggregator

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/internal/policy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A login that was offered to a session ends with the session, whose user can no longer be
// told of it.
func TestEndOfASessionEndsItsLogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var ended time.Time
		agg := newQuiet(t, Options{LogIn: func(ctx context.Context, _ schema.Server, show func(string)) error {
			show("https://login.example.com/")
			<-ctx.Done()
			ended = time.Now()
			return ctx.Err()
		}})
		defer agg.Close()
		s, peer := join(agg, "")
		s.Persistent = true
		r := &host.Request{Method: "tools/call", Era: transports.Handshake}
		if o, err := agg.offers.For(s.LoginOwner(), r, agg.config().Servers[0], "log in", peer); o == nil || err != nil {
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
type allowing struct{ nobody }

func (allowing) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept","content":{"allow":"session"}}`), nil
	}
}

// What a person allowed for a session is forgotten with it: a run has many.
func TestEndOfASessionEndsItsPermits(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	s, _ := join(agg, "")
	s.Persistent = true
	q := &permit.Question{Of: s.LoginOwner(), Persistent: true, Server: "up", Tool: "pay", Rules: &policy.Rules{}, Arguments: json.RawMessage(`{}`)}
	if err := q.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := agg.permits.Ask(t.Context(), allowing{}, q); err != nil {
		t.Fatal(err)
	}
	if _, ok := agg.permits.Answered(q); !ok {
		t.Fatal("the answer does not last for the session")
	}
	s.end()
	if _, ok := agg.permits.Answered(q); ok {
		t.Error("the answer is kept after the end of its session")
	}
}
