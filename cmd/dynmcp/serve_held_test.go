package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// halfAnswers is a server over HTTP that sends the first part of an answer at once, and the
// rest when rest is closed.
func halfAnswers(t *testing.T, size int, rest <-chan struct{}) entry {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := mcptest.Parse(string(body))
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}}`, m.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"big","inputSchema":{"type":"object"}}]}}`, m.ID)
		case "tools/call":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s`, m.ID, strings.Repeat("x", size))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-rest:
			case <-r.Context().Done():
			}
			fmt.Fprint(w, `"}]}}`)
		case "":
			w.WriteHeader(http.StatusMethodNotAllowed) // of GET
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(server.Close)
	return entry{name: "half", fields: map[string]any{"url": server.URL}}
}

// The memory for answers in transit is bounded: answers that exceed a user's share fail. The
// metrics say how much is held.
func TestAnswersThatAreBeingReadAreBounded(t *testing.T) {
	t.Parallel()
	const calls, atLeast = 12, 8 // of 12 answers of 1.5 MB 4 MB may be there, half of all
	rest := make(chan struct{})
	web := serveHTTP(t, mcptest.Config(t, document([]entry{halfAnswers(t, 1500<<10, rest)}, `"gateway": {"max_held_bytes": 8388608}`)))
	host := web.begin("/mcp")
	var refused, answered atomic.Int32
	enough := make(chan struct{})
	var hosts sync.WaitGroup
	for id := range calls {
		hosts.Go(func() {
			m := host.call("/mcp", id+1, "tools/call", string(useParams("half/big", `{}`)))
			switch {
			case !m.IsError():
				answered.Add(1)
			case strings.Contains(m.Raw, "max_held_bytes") && strings.Contains(m.Raw, "outcome unknown"):
				if refused.Add(1) == atLeast {
					close(enough)
				}
			default:
				t.Errorf("got %.300s", m.Raw)
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(time.Minute):
		t.Errorf("only %d answers were refused", refused.Load())
	}
	if _, _, text := web.send("GET", "/metrics", ""); !strings.Contains(text, "\ndynmcp_held_bytes ") || strings.Contains(text, "\ndynmcp_held_bytes 0\n") || !strings.Contains(text, "\ndynmcp_held_bytes_limit 8388608\n") {
		t.Error("the metrics do not say what is held")
	}
	close(rest)
	hosts.Wait()
	if answered.Load() == 0 || answered.Load()+refused.Load() != calls {
		t.Errorf("%d were answered, %d refused", answered.Load(), refused.Load())
	}
	if m := host.call("/mcp", 99, "tools/call", string(useParams("half/big", `{}`))); m.IsError() {
		t.Errorf("when nothing is held: %.300s", m.Raw)
	}
}

// A request of more than half of the limit is accepted while nothing else is held.
func TestALargeRequestIsTakenAlone(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, document([]entry{fake(t, "good")}, `"gateway": {"max_held_bytes": 8388608, "max_request_bytes": 8388608}`)))
	for id := range 2 {
		input := map[string]any{"x": strings.Repeat("x", 5<<20)}
		if m := web.begin("/mcp").call("/mcp", id, "tools/call", string(useParams("good/pid", input))); m.Error != nil || m.IsError() {
			t.Errorf("got %.300s", m.Raw)
		}
	}
}

// With many hosts the memory limit of the collector is not that of a run with one host.
func TestManyHostsHaveTheMemoryThatTheyNeed(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, mcptest.Config(t, document([]entry{fake(t, "good")})))
	_, _, metrics := web.send("GET", "/metrics", "")
	found := regexp.MustCompile(`(?m)^go_memlimit_bytes (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatalf("the metrics do not say the limit of memory:\n%s", metrics)
	}
	const one = 224 << 20
	if limit, err := strconv.ParseFloat(found[1], 64); err != nil || limit == one {
		t.Errorf("the limit of memory is %s, that of one host (%v)", found[1], err)
	}
}
