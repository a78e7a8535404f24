package upstream

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dynmcp/dynmcp/schema"
)

// Nothing is read from an upstream while Throttle blocks.
func TestThrottledUpstreamIsNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{}, 1)
		open <- struct{}{}
		peer := &recorder{}
		_, p := inMemory(t, schema.Server{}, ConnOptions{Peer: peer, Throttle: func() { <-open }}, silent)
		defer close(open)
		for n := range 3 {
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n%d"}`, n))
			synctest.Wait()
			if got := len(peer.all()); got != 1 {
				t.Fatalf("got %q while Throttle blocks", peer.all())
			}
		}
		open <- struct{}{}
		synctest.Wait()
		if got := len(peer.all()); got != 3 {
			t.Errorf("got %q after Throttle returned", peer.all())
		}
	})
}

func TestHTTPAnswersAreThrottled(t *testing.T) {
	t.Parallel()
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
			c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true, Throttle: func() { step("throttle") }})
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
