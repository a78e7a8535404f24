package host

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
)

// In the protocol version with batches, the answers to a batch are sent as one batch.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		working := map[string]*Request{}
		e := newTestHost(t, func(r *Request) { working[string(r.ID)] = r })
		e.begin("2025-03-26")
		e.say(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},` +
			`{"jsonrpc":"2.0","method":"notifications/x","params":{"f":1.0}},` +
			`{"jsonrpc":"2.0","id":2,"method":"tools/call"},` +
			`{"jsonrpc":"2.0","id":1,"method":"tools/call"},` +
			`{"foo":1},7,` +
			`{"jsonrpc":"2.0","id":null,"method":"tools/call"},` +
			`{"jsonrpc":"2.0","id":3,"method":"initialize"},` +
			`{"jsonrpc":"2.0","id":4,"method":"ping"}]`)
		synctest.Wait()
		working["2"].Reply(json.RawMessage(`{"two":1.0}`), nil)
		synctest.Wait()
		if got := len(e.wait(1)); got != 1 {
			t.Fatalf("%d messages before the last answer", got)
		}
		working["1"].Reply(json.RawMessage(`{"one":1}`), nil)
		got := e.wait(2)[1]
		for _, want := range []string{
			`{"jsonrpc":"2.0","id":1,"result":{"one":1}}`, `{"jsonrpc":"2.0","id":2,"result":{"two":1.0}}`, `{"jsonrpc":"2.0","id":4,"result":{}}`,
			`"id":null,"error":{"code":-32600,"message":"id 1 is in flight already"`, `"id":3,"error":{"code":-32600`, `"id":null,"error":{"code":-32600`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want it to hold %s", got, want)
			}
		}
		if n := strings.Count(got, `"jsonrpc"`); n != 8 || got[0] != '[' || got[len(got)-1] != ']' || !json.Valid([]byte(got)) {
			t.Errorf("%d answers: %s", n, got)
		}
		if got := e.settled(); len(got) != 2 {
			t.Errorf("got %q", got)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if got := e.notices[len(e.notices)-1]; got != `notifications/x {"f":1.0}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestBatchWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestHost(t, nil)
		e.begin("2025-03-26")
		e.say(`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":99,"result":{}}]`)
		synctest.Wait()
		if got := e.settled(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
		e.say(`[]`)
		if got := e.wait(3)[2]; !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`) {
			t.Errorf("empty: got %s", got)
		}
	})
}

// A cancelled request of a batch does not delay the other answers.
func TestBatchCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestHost(t, func(r *Request) {
			if string(r.ID) == "1" {
				r.Reply(json.RawMessage(`{}`), nil)
			}
		})
		e.begin("2025-03-26")
		e.say(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]`)
		synctest.Wait()
		e.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		if got := e.wait(2)[1]; got != `[{"jsonrpc":"2.0","id":1,"result":{}}]` {
			t.Errorf("got %s", got)
		}
	})
}

func TestBatchAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halfClosePipe()
		e := testHostOn(t, near, near, far, SessionOptions{HandleRequest: func(r *Request) {
			if string(r.ID) == "1" {
				r.Reply(json.RawMessage(`{}`), nil)
			}
		}})
		e.begin("2025-03-26")
		e.say(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]`)
		far.CloseWrite()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if got := e.wait(2)[1]; !strings.Contains(got, `"id":1,"result"`) || !strings.Contains(got, `"id":2,"error":{"code":5111`) {
			t.Errorf("got %s", got)
		}
	})
}

// A panic in the handler of one element is the error of that element only.
func TestBatchSurvivesPanics(t *testing.T) {
	e := newTestHost(t, func(r *Request) {
		if string(r.ID) == "2" {
			panic("boom")
		}
		r.Reply(json.RawMessage(`{}`), nil)
	})
	e.begin(batchVersion)
	e.say(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","id":2,"method":"tools/call"},{"jsonrpc":"2.0","method":"notifications/panic"},{"jsonrpc":"2.0","id":3,"method":"tools/call"}]`)
	got := e.wait(2)[1]
	for _, want := range []string{`"id":1,"result"`, `"id":2,"error":{"code":-32603`, `"id":3,"result"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want it to hold %s", got, want)
		}
	}
}
