package metrics

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/transports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched returns a monitor that redacts the word secret, and a server of its handler.
func watched(t *testing.T, opts MonitorOptions) (*Monitor, *httptest.Server) {
	t.Helper()
	opts.Redact = func(text string, whole bool) string {
		if text = strings.ReplaceAll(text, "secret", "[redacted]"); !whole {
			text = text[:len(text)-5] // it may be the beginning of the word
		}
		return text
	}
	m := New(opts)
	mux := http.NewServeMux()
	for path, handler := range m.Page() {
		mux.Handle(path, handler)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		m.End()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return m, s
}

func get(t *testing.T, url string) (string, *http.Response) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp
}

// A stream sends the stored and the new messages without secrets: short ones whole, of long ones
// the beginning and the size.
func TestStream(t *testing.T) {
	m, s := watched(t, MonitorOptions{})
	o, messages := m, &event.Tap{}
	m.Hear(messages)
	session, peer := event.Session{ID: "session-1", Server: "files", Host: "a secret host"}, event.Connection{Session: "session-1", Server: "files"}
	messages.Show(messages.Upstream("files"), true, []byte(`{"method":"of an upstream"}`))
	messages.Show(peer, true, []byte(`{"method":"x","params":`), []byte(`{"key":"secret"}}`))
	resp, err := http.Get(s.URL + "/debug/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	next := func(name string) (data string) {
		t.Helper()
		for lines.Scan() {
			event, ok := strings.CutPrefix(lines.Text(), "event: ")
			if !ok {
				continue
			}
			lines.Scan()
			if event == name {
				return strings.TrimPrefix(lines.Text(), "data: ")
			}
		}
		t.Fatalf("no event %s: %v", name, lines.Err())
		return ""
	}
	want := `"direction":"in","namespace":"files","session":"session-1","size":40,"message":{"method":"x","params":{"key":"[redacted]"}}`
	if got := next("message"); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s in it", got, want)
	}
	ping := next("ping") // it watches from now on
	var said struct{ Time time.Time }
	if err := json.Unmarshal([]byte(ping), &said); err != nil || time.Since(said.Time).Abs() > 5*time.Minute {
		t.Errorf("got ping %s: %v", ping, err)
	}
	o.Opened(session)
	if got := next("connection"); got != `{"event":"connected","namespace":"files","session":"session-1","host":"a [redacted] host"}` {
		t.Errorf("got %s", got)
	}
	o.Closed(session)
	if got := next("connection"); !strings.HasPrefix(got, `{"event":"disconnected","namespace":"files","session":"session-1"`) {
		t.Errorf("got %s", got)
	}
	messages.Show(peer, false, []byte(`{"result":"`), []byte(strings.Repeat("x", 1<<20)), []byte(`"}`))
	var long struct {
		Size    int
		Cut     bool
		Message string
	}
	if err := json.Unmarshal([]byte(next("message")), &long); err != nil || long.Size != 1<<20+13 || !long.Cut || len(long.Message) != maxMessageText {
		t.Errorf("got %d of %d bytes, cut: %t, %v", len(long.Message), long.Size, long.Cut, err)
	}
}

// The number of stored messages is bounded.
func TestKeepsTheLast(t *testing.T) {
	m, _ := watched(t, MonitorOptions{})
	messages := &event.Tap{}
	m.Hear(messages)
	const sent = 3 * maxMessages
	for range sent {
		messages.Show(event.Connection{Session: "s"}, true, []byte(`{}`))
	}
	if err := m.follower.Close(); err != nil {
		t.Fatal(err)
	}
	if m.lastSeq != sent || len(m.messages) != maxMessages {
		t.Errorf("%d of %d are kept, want %d of %d", len(m.messages), m.lastSeq, maxMessages, sent)
	}
}

// The routes only read.
func TestRoutesOnlyRead(t *testing.T) {
	_, s := watched(t, MonitorOptions{})
	for _, path := range []string{"/debug/state", "/debug/stream", "/metrics"} {
		resp, err := http.Post(s.URL+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: got %s", path, resp.Status)
		}
	}
}

// Calls are counted by kind and outcome. Unknown methods are counted as other.
func TestMetrics(t *testing.T) {
	m, s := watched(t, MonitorOptions{})
	o := m
	began := time.Now()
	for _, end := range []event.Call{
		{Upstream: "files", Method: "tools/call", Kind: "ok", Outcome: transports.Executed, Asked: 10, Answered: 100},
		{Upstream: "files", Method: "tools/call", Kind: "timeout", Outcome: transports.Unknown, Asked: 10},
		{Upstream: "files", Method: "x/made-up-1", Kind: "ok", Outcome: transports.Executed},
		{Upstream: "files", Method: "x/made-up-2", Kind: "ok", Outcome: transports.Executed},
	} {
		end.Began, end.Sent, end.End = began, began.Add(5*time.Millisecond), began.Add(20*time.Millisecond)
		o.Called(end)
	}
	o.Called(event.Call{Upstream: "files", Method: "tools/call", Kind: "start_failed", Outcome: transports.NotSent, Began: began, End: began.Add(time.Hour)})
	o.Dropped(event.Session{})
	got, _ := get(t, s.URL+"/metrics")
	for _, line := range []string{
		`dynmcp_calls_total{kind="ok",method="tools/call",outcome="done",upstream="files"} 1`,
		`dynmcp_calls_total{kind="timeout",method="tools/call",outcome="unknown",upstream="files"} 1`,
		`dynmcp_calls_total{kind="start_failed",method="tools/call",outcome="not_sent",upstream="files"} 1`,
		`dynmcp_calls_total{kind="ok",method="other",outcome="done",upstream="files"} 2`,
		`dynmcp_call_bytes_total{direction="params",upstream="files"} 20`,
		`dynmcp_call_bytes_total{direction="result",upstream="files"} 100`,
		`dynmcp_call_duration_seconds_bucket{upstream="files",le="0.01"} 0`,
		`dynmcp_call_duration_seconds_bucket{upstream="files",le="0.025"} 4`,
		`dynmcp_dropped_notifications_total 1`,
		`go_goroutines `,
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats["files"]
	if stats.Measure(); stats.Calls != 5 || stats.Errors != 2 || stats.Kinds["timeout"] != 1 || stats.Sent99 != 15 {
		t.Errorf("got %+v", stats)
	}
}

// The metrics and the state name the replica.
func TestMetricsOfAReplica(t *testing.T) {
	m, s := watched(t, MonitorOptions{Replica: "east-1"})
	m.Dropped(event.Session{})
	got, _ := get(t, s.URL+"/metrics")
	for _, line := range []string{`dynmcp_dropped_notifications_total{replica="east-1"} 1`, `go_goroutines{replica="east-1"} `} {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	if got := m.State().Replica; got != "east-1" {
		t.Errorf("the state is of %q", got)
	}
}

// Spans are sent as OTLP, as children of the host's span.
func TestTraces(t *testing.T) {
	type attribute struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	type body struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []attribute }
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, ParentSpanID, Name string
					Kind                                int
					StartTimeUnixNano, EndTimeUnixNano  string
					Attributes                          []attribute
					Status                              struct{ Code int }
				}
			}
		}
	}
	requests := make(chan body, 4)
	var busy = true // once
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy {
			busy = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var b body
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Key") != "a b" {
			t.Errorf("got %s with the key %q: %v", r.URL, r.Header.Get("X-Key"), err)
		}
		requests <- b
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=ours")
	tracer, err := newTracer("1.2.3", "east-1", slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(100, 5)
	tracer.Call(event.Call{
		From: event.Session{ID: "s"}, Upstream: "files", Method: "tools/call", Tool: "read", Kind: "timeout", Outcome: transports.Unknown,
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Began: began, End: began.Add(time.Second), Asked: 7,
	})
	tracer.Close()
	got := <-requests
	of := func(list []attribute, key string) string {
		for _, a := range list {
			if a.Key == key {
				return a.Value.StringValue + a.Value.IntValue
			}
		}
		return ""
	}
	about := got.ResourceSpans[0].Resource.Attributes
	if of(about, "service.name") != "ours" || of(about, "service.version") != "1.2.3" || of(about, "service.instance.id") != "east-1" {
		t.Errorf("the resource is %v", about)
	}
	span := got.ResourceSpans[0].ScopeSpans[0].Spans[0]
	if span.TraceID != "0af7651916cd43dd8448eb211c80319c" || span.ParentSpanID != "b7ad6b7169203331" || len(span.SpanID) != 16 {
		t.Errorf("it is not below the host's span: %+v", span)
	}
	if span.Name != "tools/call read" || span.Kind != 2 || span.StartTimeUnixNano != "100000000005" || span.EndTimeUnixNano != "101000000005" || span.Status.Code != 2 {
		t.Errorf("got %+v", span)
	}
	for key, want := range map[string]string{"error.type": "timeout", "dynmcp.upstream": "files", "dynmcp.outcome": "unknown", "dynmcp.params.size": "7", "gen_ai.tool.name": "read"} {
		if of(span.Attributes, key) != want {
			t.Errorf("%s is %q, want %q", key, of(span.Attributes, key), want)
		}
	}
}

// Without an endpoint there is no tracer. Invalid variables are errors.
func TestTracesFromEnvironment(t *testing.T) {
	for _, name := range []string{"ENDPOINT", "TRACES_ENDPOINT", "PROTOCOL", "TRACES_PROTOCOL", "TIMEOUT", "HEADERS"} {
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, "")
		os.Unsetenv("OTEL_EXPORTER_OTLP_" + name)
	}
	for _, c := range []struct {
		env  map[string]string
		want string // the error; "" means no tracer and no error
	}{
		{nil, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, `OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" is no http or https URL`},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not spoken here, only http/json is`},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "1s"}, `OTEL_EXPORTER_OTLP_TIMEOUT: "1s" is no number of milliseconds`},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS": "a"}, `OTEL_EXPORTER_OTLP_HEADERS: entries are name=value, with commas between them`},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			tracer, err := newTracer("1", "", slog.Default())
			if tracer != nil || c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("%v: got %v, %v, want %q", c.env, tracer, err, c.want)
			}
		})
	}
}

// Events after the end of a session store nothing.
func TestNothingIsKeptOfSessionsThatHaveEnded(t *testing.T) {
	m := New(MonitorOptions{Version: "test"})
	defer m.End()
	o, messages, info := m, &event.Tap{}, event.Session{ID: "one"}
	m.Hear(messages)
	o.Opened(info)
	o.Closed(info)
	messages.Show(event.Connection{Session: "one"}, false, []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	if err := m.follower.Close(); err != nil {
		t.Fatal(err)
	}
	o.Called(event.Call{From: info, Tool: "discover_tool", Queries: 1})
	if len(m.counts) > 0 || len(m.searched) > 0 {
		t.Errorf("kept: %v, %v", m.counts, m.searched)
	}
}
