package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/schema"
)

// An address is a web server that answers with statuses in turn, the last one for ever.
type address struct {
	statuses []int
	hang     bool // it answers when the request is cancelled

	mu   sync.Mutex
	got  []*http.Request
	told []message
	at   []time.Time
}

func (a *address) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.got, a.told, a.at = append(a.got, r), append(a.told, m), append(a.at, time.Now())
	status := a.statuses[min(len(a.got), len(a.statuses))-1]
	a.mu.Unlock()
	if a.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func hookFor(on ...string) Webhook {
	return Webhook{URL: "https://hooks.example.com/T0/very-secret", On: on, Slow: 10 * time.Second, Secret: "key"}
}

// Each event goes to the addresses that want it, without the call's arguments and result.
func TestWhatIsSent(t *testing.T) {
	began := time.Unix(1000, 0)
	call := func(kind string, took time.Duration) *event.Call {
		return &event.Call{
			Upstream: "files", Tool: "read", Method: "tools/call", Kind: kind, Outcome: "done", Began: began, End: began.Add(took),
			Arguments: json.RawMessage(`{"path":"private"}`), Result: json.RawMessage(`{"private":1}`),
		}
	}
	own := call("error", time.Minute)
	own.Upstream, own.Tool = "", "discover_tool"
	for _, test := range []struct {
		name string
		call *event.Call
		want map[string]string // by the event that an address wants
	}{
		{"ok", call("ok", time.Second), nil},
		{"slow", call("ok", 10*time.Second), map[string]string{"slow": "call.slow"}},
		{"failed", call("tool_error", time.Second), map[string]string{"failed": "call.failed"}},
		{"failed and slow", call("timeout", time.Minute), map[string]string{"failed": "call.failed", "slow": "call.slow", "all": "call.failed"}},
		{"denied", call("denied", 0), map[string]string{"denied": "call.denied", "all": "call.denied"}},
		{"not approved", call("not_approved", 0), map[string]string{"denied": "call.denied"}},
		{"cancelled", call("cancelled", time.Minute), nil},
		{"of our own tools", own, nil},
	} {
		for on, hook := range map[string]Webhook{
			"failed": hookFor("failed"), "denied": hookFor("denied"), "slow": hookFor("slow"), "changed": hookFor("changed"),
			"all": hookFor("failed", "denied", "slow", "changed"),
		} {
			m, ok := hook.aboutCall(test.call)
			if on == "all" && test.want["all"] == "" {
				continue
			}
			if ok != (test.want[on] != "") || m.Type != test.want[on] {
				t.Errorf("%s, for an address that wants %s: got %q, want %q", test.name, on, m.Type, test.want[on])
			}
			if text, err := json.Marshal(m); err != nil || bytes.Contains(text, []byte("private")) {
				t.Errorf("%s: %s has content of the call, %v", test.name, text, err)
			}
		}
	}
}

// The signature is that of the example in the Standard Webhooks specification's libraries.
func TestSignature(t *testing.T) {
	hook := Webhook{Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	got := hook.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", []byte(`{"test": 2432232314}`), time.Unix(1614265330, 0))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got["webhook-signature"] != want || got["webhook-timestamp"] != "1614265330" {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := (Webhook{}).headers("x", nil, time.Now()); got["webhook-signature"] != "" {
		t.Errorf("without a secret: got %v", got)
	}
}

// A message is repeated with its id while the address is not available, and not if it refuses it.
func TestRepeats(t *testing.T) {
	for _, test := range []struct {
		statuses []int
		seconds  []int // of the requests
		lost     bool
	}{
		{[]int{200}, []int{0}, false},
		{[]int{503, 429, 204}, []int{0, 1, 6}, false},
		{[]int{500}, []int{0, 1, 6, 31}, true},
		{[]int{410}, []int{0}, true},
		{[]int{302}, []int{0}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, began := &address{statuses: test.statuses}, time.Now()
			var log bytes.Buffer
			s := newSender(hookFor("failed"), a, slog.New(slog.NewTextHandler(&log, nil)))
			s.add(message{Type: "first"})
			time.Sleep(time.Minute)
			s.add(message{Type: "second"})
			time.Sleep(time.Minute)
			s.end()
			var seconds []int
			for i, r := range a.got {
				if a.told[i].Type == "first" {
					seconds = append(seconds, int(a.at[i].Sub(began).Seconds()))
					if id := r.Header.Get("webhook-id"); id == "" || id != a.got[0].Header.Get("webhook-id") {
						t.Errorf("%v: request %d has the id %q", test.statuses, i, id)
					}
				}
			}
			if !slices.Equal(seconds, test.seconds) {
				t.Errorf("%v: requests after %v seconds, want %v", test.statuses, seconds, test.seconds)
			}
			if lost := a.told[len(a.told)-1].Dropped == 1; lost != test.lost {
				t.Errorf("%v: the next message says that one was lost: %t", test.statuses, lost)
			}
			if strings.Contains(log.String(), "very-secret") || strings.Contains(log.String(), "hooks.example.com") != test.lost {
				t.Errorf("%v: log %s", test.statuses, log.String())
			}
		})
	}
}

// A call does not wait for an address. What does not fit is counted.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &address{statuses: []int{200}, hang: true}
		var log bytes.Buffer
		p := &part{log: slog.New(slog.NewTextHandler(&log, nil))}
		p.hooks, p.senders = []Webhook{hookFor("failed")}, []*sender{newSender(hookFor("failed"), a, p.log)}
		began := time.Now()
		for range queued + 10 {
			p.Called(event.Call{Upstream: "a", Tool: "b", Kind: "error"})
			synctest.Wait()
		}
		if got := p.senders[0].dropped.Load(); got != 9 { // one is being sent
			t.Errorf("%d were dropped, want 9", got)
		}
		if time.Since(began) != 0 {
			t.Error("calls waited")
		}
		p.End()
		if took := time.Since(began); took != maxEnd {
			t.Errorf("the end took %v, want %v", took, maxEnd)
		}
		if want := fmt.Sprint("messages=", queued); !strings.Contains(log.String(), want) {
			t.Errorf("got %s, want %s in it", log.String(), want)
		}
	})
}

// A config that cannot work is refused, with the place.
func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`[{"url": "hooks.example.com"}]`:                     "webhooks[0].url: this is not the address of a web server",
		`[{"url": "https://a.test", "on": []}]`:              "webhooks[0].on: nothing is sent to this address",
		`[{"url": "https://a.test", "secret": "whsec_?"}]`:   "webhooks[0].secret: what follows whsec_ is not base64",
		`[{"url": "https://a.test", "on": ["denied", "x"]}]`: `webhooks[0].on[1]: invalid value "x"`,
		`[{"on": ["denied"]}]`:                               "webhooks[0]: url is missing",
		`[{"url": "https://a.test/${NO_SUCH}"}]`:             "NO_SUCH is not set",
		`[{"url": "https://a.test/${KEY}"}]`:                 "",
	} {
		options := schema.LoadOptions{Dir: t.TempDir(), Environ: []string{"KEY=k"}, Sections: Module.Keys}
		cfg, err := schema.LoadText("mcp.json", []byte(`{"mcp": {"a": {"command": "true"}}, "webhooks": `+text+`}`), options)
		switch {
		case want == "" && (err != nil || schema.Keys[Keys](cfg).Webhooks[0].URL != "https://a.test/k"):
			t.Errorf("%s: got %+v, %v", text, cfg, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
