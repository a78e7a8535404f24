package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A listener is an upstream in memory of the stateless era that records its notification streams.
type listener struct {
	*puppet
	// onListen answers a subscriptions/listen; nil grants everything at once.
	onListen func(id string, wants json.RawMessage)

	mu     sync.Mutex
	open   map[string][]string // the URIs that open streams name, by the stream's id
	opened int                 // how many streams were opened
}

const allKinds = `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}}`

// connect makes the handshake with a listener.
func (l *listener) connect(t *testing.T, peer transports.Peer) *Conn {
	t.Helper()
	l.open = map[string][]string{}
	var c *Conn
	c, l.puppet = inMemory(t, schema.Server{}, ConnOptions{Peer: peer}, l.take)
	if err := c.Handshake(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func (l *listener) take(p *puppet, m wire.Message) {
	switch m.Method {
	case methodDiscover:
		p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":[%q],"capabilities":%s}}`, m.ID, transports.StatelessVersion, allKinds))
	case "subscriptions/listen":
		wants := wire.Get(m.Params, "notifications")
		var uris []string
		for uri := range wire.Elements(wire.Get(wants, "resourceSubscriptions")) {
			text, _ := wire.Text(uri)
			uris = append(uris, text)
		}
		l.mu.Lock()
		l.open[string(m.ID)] = uris
		l.opened++
		l.mu.Unlock()
		if l.onListen != nil {
			l.onListen(string(m.ID), wants)
			return
		}
		p.say(ackOf(string(m.ID), string(wants)))
	case "notifications/cancelled":
		l.close(string(wire.Get(m.Params, "requestId")))
	}
}

func ackOf(id, grants string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{%q:%s}}}`, grants, transports.MetaSubscriptionID, id)
}

// close removes a stream.
func (l *listener) close(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, id)
}

// end ends all streams with a result.
func (l *listener) end() {
	for id := range l.streams() {
		l.close(id)
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	}
}

// streams returns the open streams with their URIs, sorted.
func (l *listener) streams() map[string][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]string{}
	for id, uris := range l.open {
		all[id] = slices.Sorted(slices.Values(uris))
	}
	return all
}

func uriParams(uri string) json.RawMessage { return fmt.Appendf(nil, `{"uri":%q}`, uri) }

// wantStream fails the test unless one stream is open and names these URIs.
func (l *listener) wantStream(t *testing.T, uris ...string) {
	t.Helper()
	synctest.Wait()
	open := l.streams()
	for _, got := range open {
		if len(open) == 1 && slices.Equal(got, slices.Sorted(slices.Values(uris))) {
			return
		}
	}
	t.Fatalf("the open streams are %v, want one of %v", open, uris)
}

// After concurrent subscriptions one stream is open and names all of them.
func TestConcurrentSubscriptions(t *testing.T) {
	t.Parallel()
	const rounds, subscribers = 50, 20
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			l := &listener{}
			if round%2 > 0 { // otherwise the stream is acknowledged at once
				l.onListen = func(id string, wants json.RawMessage) {
					go func() {
						time.Sleep(time.Millisecond)
						l.say(ackOf(id, string(wants)))
					}()
				}
			}
			c := l.connect(t, nil)
			var all sync.WaitGroup
			var uris, kept []string
			for n := range subscribers {
				uris = append(uris, fmt.Sprintf("x://%d", n))
			}
			for n := range subscribers {
				all.Go(func() {
					if err := c.Subscribe(t.Context(), uriParams(uris[n])); err != nil {
						t.Errorf("%s: %v", uris[n], err)
					}
				})
				if n%3 > 0 {
					kept = append(kept, uris[n])
				}
			}
			all.Wait()
			l.wantStream(t, uris...)
			if opened := l.opened; l.onListen != nil && opened > 3 {
				t.Errorf("%d streams were opened for %d subscriptions", opened, subscribers)
			}
			for n := 0; n < subscribers; n += 3 {
				all.Go(func() {
					if err := c.Unsubscribe(t.Context(), uriParams(uris[n])); err != nil {
						t.Errorf("%s: %v", uris[n], err)
					}
				})
			}
			all.Wait()
			l.wantStream(t, kept...)
			opened := l.opened
			if err := c.Subscribe(t.Context(), uriParams(uris[1])); err != nil || l.opened != opened {
				t.Errorf("again: %v, %d more streams", err, l.opened-opened)
			}
		})
	}
}

// The old stream stays open until the new one is open.
func TestSubscriptionLeavesNoGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := &recorder{}
		l := &listener{}
		c := l.connect(t, peer)
		var pending string
		l.onListen = func(id string, _ json.RawMessage) { pending = id }
		done := make(chan error, 1)
		go func() { done <- c.Subscribe(t.Context(), uriParams("x://a")) }()
		synctest.Wait()
		if len(l.streams()) != 2 || len(done) > 0 {
			t.Errorf("the open streams are %v; %d subscriptions returned", l.streams(), len(done))
		}
		l.say(ackOf(pending, `{"resourceSubscriptions":["x:\/\/a"]}`))
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.wantStream(t, "x://a")
		if got := peer.all(); len(got) > 0 {
			t.Errorf("got %q", got)
		}
	})
}

// A subscription that the upstream does not grant fails. Others that share its stream succeed.
func TestSubscriptionNotGranted(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(l *listener, id string, wants json.RawMessage){
		"left out": func(l *listener, id string, wants json.RawMessage) {
			l.say(ackOf(id, strings.NewReplacer(`"x://bad",`, "", `"x://bad"`, "").Replace(string(wants))))
		},
		"as a whole": func(l *listener, id string, wants json.RawMessage) {
			if strings.Contains(string(wants), "x://bad") {
				l.close(id)
				l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32002,"message":"there is no x://bad"}}`)
				return
			}
			l.say(ackOf(id, string(wants)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listener{}
				c := l.connect(t, nil)
				l.onListen = func(id string, wants json.RawMessage) { refuse(l, id, wants) }
				var all sync.WaitGroup
				for _, uri := range []string{"x://bad", "x://c", "x://bad", "x://d"} {
					all.Go(func() {
						err := c.Subscribe(t.Context(), uriParams(uri))
						var rpc *wire.Error
						if refused := errors.As(err, &rpc) && strings.Contains(rpc.Message, "x://bad"); refused != (uri == "x://bad") {
							t.Errorf("%s: %v", uri, err)
						}
					})
				}
				all.Wait()
				if err := c.Subscribe(t.Context(), uriParams("x://e")); err != nil {
					t.Error(err)
				}
				l.wantStream(t, "x://c", "x://d", "x://e")
			})
		})
	}
}

// A stream without an acknowledgement counts as open after ackTimeout, or when any message comes
// on it.
func TestSubscriptionUnacknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := &recorder{}
		l := &listener{onListen: func(string, json.RawMessage) {}}
		c := l.connect(t, peer)
		began := time.Now()
		if err := c.Subscribe(t.Context(), uriParams("x://a")); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*ackTimeout {
			t.Errorf("it took %v", took)
		}
		l.wantStream(t, "x://a")
		l.onListen = func(id string, _ json.RawMessage) {
			l.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a","_meta":{%q:%s}}}`, transports.MetaSubscriptionID, id))
		}
		began = time.Now()
		if err := c.Subscribe(t.Context(), uriParams("x://b")); err != nil || time.Since(began) > 0 {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		l.wantStream(t, "x://a", "x://b")
		if got := peer.all(); !slices.Equal(got, []string{`notifications/resources/updated {"uri":"x://a"}`}) {
			t.Errorf("got %q", got)
		}
	})
}

// The end of the connection ends the wait of a subscription.
func TestSubscriptionWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &listener{}
		c := l.connect(t, nil)
		l.onListen = func(string, json.RawMessage) {}
		done := make(chan error, 1)
		go func() { done <- c.Subscribe(t.Context(), uriParams("x://a")) }()
		synctest.Wait()
		c.Close()
		wantFailure(t, <-done, transports.CodeShuttingDown, transports.NotSent)
	})
}

// Changes while no stream was open were not announced, so the peer is told of every list when the
// next stream is open, and of none before.
func TestListsAfterGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := &recorder{}
		l := &listener{}
		c := l.connect(t, peer)
		if err := c.Subscribe(t.Context(), uriParams("x://a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := peer.all(); len(got) > 0 {
			t.Fatalf("while the stream was open: got %q", got)
		}
		var pending string
		l.onListen = func(id string, _ json.RawMessage) { pending = id }
		l.end()
		time.Sleep(reopenFirst)
		l.wantStream(t, "x://a")
		if got := peer.all(); len(got) > 0 {
			t.Errorf("before the acknowledgement: got %q", got)
		}
		l.say(ackOf(pending, `{}`))
		got := peer.wait(t, 3)
		want := []string{"notifications/tools/list_changed ", "notifications/prompts/list_changed ", "notifications/resources/list_changed "}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// If the first stream is acknowledged only after lists may have been fetched, the peer is told of
// the lists whose changes the upstream announces.
func TestListsBeforeFirstAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, ackGrace / 2, 2 * ackGrace, 2 * ackTimeout} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := &recorder{}
				l := &listener{}
				l.onListen = func(id string, wants json.RawMessage) {
					go func() {
						time.Sleep(after)
						l.say(ackOf(id, string(wants)))
					}()
				}
				l.connect(t, peer)
				time.Sleep(time.Hour)
				var want []string
				if after > ackGrace {
					want = append(want, "notifications/tools/list_changed ")
				}
				if got := peer.all(); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
}

// A stream that is refused, or on which nothing is granted, is not requested again before the next
// subscription.
func TestUselessStreamIsNotReopened(t *testing.T) {
	t.Parallel()
	for name, onListen := range map[string]func(l *listener, id string){
		"granted nothing": func(l *listener, id string) {
			l.say(ackOf(id, `{"toolsListChanged":false,"resourceSubscriptions":[]}`))
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		},
		"refused": func(l *listener, id string) {
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no streams"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer := &recorder{}
				l := &listener{}
				l.onListen = func(id string, _ json.RawMessage) {
					l.close(id)
					onListen(l, id)
				}
				c := l.connect(t, peer)
				time.Sleep(time.Hour)
				if l.opened != 1 || len(peer.all()) > 0 {
					t.Errorf("%d streams were opened, the peer got %q", l.opened, peer.all())
				}
				if err := c.Unsubscribe(t.Context(), uriParams("x://a")); err != nil || l.opened != 1 {
					t.Errorf("unsubscribe: %v, %d streams were opened", err, l.opened)
				}
				if err := c.Subscribe(t.Context(), uriParams("x://a")); err == nil {
					t.Error("Subscribe: no error")
				}
				l.onListen = nil
				if err := c.Subscribe(t.Context(), uriParams("x://b")); err != nil {
					t.Error(err)
				}
				l.wantStream(t, "x://b")
			})
		})
	}
}

// A stream that ends is reopened after pauses that double, unless it was open for long.
func TestNotificationStreamIsReopenedAfterPauses(t *testing.T) {
	for name, test := range map[string]struct {
		open time.Duration
		want []time.Duration // between the starts of streams
	}{
		"short": {time.Second, seconds(1.5, 2, 3, 5, 9, 17, 31, 31)},
		"long":  {reopenMost + time.Second, seconds(31.5, 31.5, 31.5)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listener{}
				var mu sync.Mutex
				var opened []time.Time
				l.onListen = func(id string, wants json.RawMessage) {
					mu.Lock()
					opened = append(opened, time.Now())
					mu.Unlock()
					l.say(ackOf(id, string(wants)))
					time.AfterFunc(test.open, func() { l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`) })
				}
				c := l.connect(t, nil)
				time.Sleep(3 * time.Minute)
				c.Close()
				mu.Lock()
				defer mu.Unlock()
				var got []time.Duration
				for n := 1; n < len(opened); n++ {
					got = append(got, opened[n].Sub(opened[n-1]))
				}
				if first := got[:min(len(got), len(test.want))]; !slices.Equal(first, test.want) {
					t.Errorf("got pauses of %v, want %v", first, test.want)
				}
			})
		})
	}
}

// A first stream that cannot be opened is requested again after the same pauses.
func TestNotificationStreamThatCannotBeOpened(t *testing.T) {
	var tried []time.Time
	r := &responder{answer: func(*http.Request, int) (int, string) {
		tried = append(tried, time.Now())
		return 500, ""
	}}
	onResponder(t, r, func(c *Conn, _ *httpLink) {
		c.stateless.Store(true)
		c.subscriptions.start(context.Background())
		time.Sleep(time.Minute)
	})
	want := seconds(.5, 1, 2, 4, 8, 16)
	for n, pause := range want {
		if n+1 >= len(tried) || tried[n+1].Sub(tried[n]) != pause {
			t.Fatalf("it was tried at %v, want pauses of %v", tried, want)
		}
	}
}

// A stream has the member taskIds and the extension for tasks only if there is a subscription to a
// task.
func TestSubscriptionToATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{}
		c := l.connect(t, nil)
		if err := c.Subscribe(t.Context(), json.RawMessage(`{"taskId":"t1"}`)); err != nil {
			t.Fatal(err)
		}
		var asked []bool
		for _, line := range l.lines() {
			if strings.Contains(line, `"subscriptions/listen"`) {
				task := strings.Contains(line, `"taskIds":["t1"]`)
				if extension := strings.Contains(line, `"io.modelcontextprotocol/tasks":{}`); extension != task {
					t.Errorf("got %s", line)
				}
				asked = append(asked, task)
			}
		}
		if !slices.Equal(asked, []bool{false, true}) {
			t.Errorf("got %q", l.lines())
		}
	})
}

// Over HTTP each stream has its acknowledgement.
func TestSubscriptionNotGrantedOverHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch m, _ := wire.Parse(body); m.Method {
		case methodDiscover:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
		case "subscriptions/listen":
			events(w, "data: "+ackOf(string(m.ID), "{}")+"\n\n")
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	c := dial(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: server.URL}, ConnOptions{})
	if err := c.Subscribe(t.Context(), uriParams("x://a")); err == nil || !strings.Contains(err.Error(), "grants no subscription to x://a") {
		t.Errorf("got %v", err)
	}
}
