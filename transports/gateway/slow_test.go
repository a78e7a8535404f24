package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A lockedBuffer is a buffer for logs that is safe for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// If one host reads nothing, neither answers nor its standalone stream, its session ends and the
// log says so. All others are answered.
func TestSlowReaderLosesItsSession(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	large := json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("x", 900<<10)))
	tg := newTestGateway(t, GatewayOptions{MaxResponseBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(r *host.Request) { r.Reply(large, nil) })
	stalled := tg.begin("/mcp")
	slow := <-tg.sessions
	tg.dial("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + stalled + "\r\n\r\n")
	for i := range 8 {
		line := call(100+i, "x")
		tg.dial(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", stalled, len(line), line))
	}
	var others sync.WaitGroup
	for range 4 {
		id := tg.begin("/mcp")
		others.Go(func() {
			for i := range 10 {
				if a := tg.do("POST", "/mcp", call(i+1, "x"), "Mcp-Session-Id", id); a.status != 200 || len(a.body) < len(large) {
					t.Errorf("another host: %d %.300s", a.status, a.body)
				}
			}
		})
	}
	changed := json.RawMessage(fmt.Sprintf(`{"requestId":1,"reason":%q}`, strings.Repeat("x", 512<<10)))
	mcptest.Soon(t, "its session ends", func() bool {
		slow.Notify("notifications/cancelled", changed)
		return len(tg.g.sessions.all()) == 4
	})
	others.Wait()
	if !strings.Contains(log.String(), "a host reads too slowly, its session ends") {
		t.Errorf("the log does not say why: %s", log.String())
	}
	if a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", stalled); a.status != 404 {
		t.Errorf("the stalled session: %d %.300s", a.status, a.body)
	}
}

// The unread bytes of a host are counted over all its streams, as long as it can read them.
func TestUnreadBytesOfAllStreamsAreCounted(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	tg.g.maxUnread = 1 << 20
	tg.begin("/mcp")
	s := tg.g.sessions.all()[0]
	answer := [][]byte{bytes.Repeat([]byte("x"), 1000)}
	post := func() *stream {
		st := s.stream(1000)
		if err := st.put(nil, host.Response, answer); err != nil {
			t.Fatal(err)
		}
		return st
	}
	taken, forgotten := post(), post()
	waits := func(want int64) {
		t.Helper()
		if got := s.unread.now.Load(); got != want {
			t.Errorf("%d bytes wait, want %d", got, want)
		}
	}
	waits(2000)
	carrier, _, _ := taken.carry(0)
	taken.take(carrier)
	waits(1000)
	taken.carry(1) // the host resumes the stream
	waits(2000)
	s.forget(forgotten)
	waits(1000)
	for range 2 * maxEnded { // the oldest are dropped
		post()
	}
	waits(1000 * (maxEnded + 1)) // the newest is added after the oldest are dropped
	s.unread.now.Add(tg.g.maxUnread)
	post()
	mcptest.Soon(t, "its session ends", func() bool { return len(tg.g.sessions.all()) == 0 })
}
