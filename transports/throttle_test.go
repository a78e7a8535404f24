package transports

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/schema"
)

// What was read before is handled, but nothing more is read of an upstream that
// is throttled.
func TestThrottledUpstreamIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{}, 1)
		open <- struct{}{}
		peer := &recorder{}
		_, p := inMemory(t, schema.Server{}, Options{Peer: peer, Throttle: func() { <-open }}, silent)
		defer close(open)
		for n := range 3 {
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n%d"}`, n))
			synctest.Wait()
			if got := len(peer.all()); got != 1 {
				t.Fatalf("got %q while it is throttled", peer.all())
			}
		}
		open <- struct{}{}
		synctest.Wait()
		if got := len(peer.all()); got != 3 {
			t.Errorf("got %q when it was not any more", peer.all())
		}
	})
}

func TestThrottleComesBeforeWhatHTTPBrings(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":%s,"result":{}}`
	for name, call := range map[string]func(w http.ResponseWriter, id string){
		"body":   func(w http.ResponseWriter, id string) { plain(w, fmt.Sprintf(answer, id)) },
		"stream": func(w http.ResponseWriter, id string) { events(w, "data: "+fmt.Sprintf(answer, id)+"\n\n") },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var steps []string
			step := func(name string) {
				mu.Lock()
				defer mu.Unlock()
				steps = append(steps, name)
			}
			s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
				step("asked")
				call(w, id)
			}}
			c := dial(t, script(t, s), Options{Legacy: true, Throttle: func() { step("throttle") }})
			if _, err := tool(t, c, "x", "{}"); err != nil {
				t.Fatal(err)
			}
			step("answered")
			mu.Lock()
			defer mu.Unlock()
			i := slices.Index(steps, "asked")
			if got := strings.Join(steps[i:], " "); got != "asked throttle answered" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A host that does not read can make us produce only so much with what one read
// brought.
func TestHostThatDoesNotReadAsksForMuchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		taken := 0
		host := NewHost("h1", in, out, HostOptions{
			Control: mcp.NewServer(&mcp.Implementation{Name: "x"}, nil),
			Handle: func(r *Request) {
				taken++
				r.Reply(json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`), nil)
			},
			Notice: func(string, json.RawMessage) {},
		})
		served := make(chan error, 1)
		go func() { served <- host.Serve(t.Context()) }()
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
		if most := hostMaxUnread>>20 + 1; taken > most {
			t.Errorf("%d requests were answered with a MiB each, want at most %d", taken, most)
		}
		stdout.Close() // nobody will read any more
		<-served
		in.Close()
		stdin.Close()
	})
}
