package aggregator

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A brokenServer answers its handshake and its list after a time, or fails to start after it.
type brokenServer struct {
	after   time.Duration // 0 is never
	refused error
}

func (b brokenServer) open(t *testing.T, running *sync.WaitGroup) func(schema.Server, upstream.ConnOptions) (*upstream.Conn, error) {
	return func(server schema.Server, opts upstream.ConnOptions) (*upstream.Conn, error) {
		if b.refused != nil {
			time.Sleep(b.after)
			return nil, b.refused
		}
		ours, theirs := net.Pipe()
		running.Go(func() {
			for lines := bufio.NewScanner(theirs); lines.Scan(); {
				id, result := wire.Get(lines.Bytes(), "id"), `{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}`
				if strings.Contains(lines.Text(), `"initialize"`) {
					time.Sleep(b.after)
					result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
				}
				if id != nil && b.after > 0 {
					_, _ = fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
				}
			}
		})
		return upstream.OpenStream(server, ours, opts), nil
	}
}

// session returns how long a host waits for its list of tools in a run of its own, the answer, whether
// the tool of the server was announced in the time that the session lasts after it.
func (b brokenServer) session(t *testing.T, cfg *schema.Config, dir, client string, lasts time.Duration) (waited time.Duration, answer string, announced bool) {
	agg, err := New(cfg, Options{Version: "1", StoreDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	agg.fleet.Open = b.open(t, &running)
	ours, theirs := net.Pipe()
	running.Go(func() { _ = agg.ServeConn(t.Context(), ours) })
	answers := make(chan string)
	running.Go(func() {
		defer close(answers)
		lines := bufio.NewScanner(theirs)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			answers <- lines.Text()
		}
	})
	ask := func(request, has string) string {
		_, _ = fmt.Fprintln(theirs, request)
		for line := range answers {
			if strings.Contains(line, has) {
				return line
			}
		}
		return ""
	}
	ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`, client), `"id":1`)
	_, _ = fmt.Fprintln(theirs, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	began := time.Now()
	request := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if cfg.Expose[0] == schema.ExposeDiscover {
		request = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"discover_tool","arguments":{}}}`
	}
	answer = ask(request, `"id":2`)
	waited = time.Since(began)
	over := time.After(lasts)
	for rest := true; rest; {
		select {
		case line := <-answers:
			announced = announced || strings.Contains(line, "tools/list_changed")
		case <-over:
			rest = false
		}
	}
	theirs.Close()
	for range answers {
	}
	agg.Close()
	running.Wait()
	return waited, answer, announced
}

// A server without a stored list that is dead, slow or refused costs a host its own patience once, in
// no later session; it is named there at once, and its tools come when it has started.
func TestBrokenServersCostPatienceOnce(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]brokenServer{
		"dead":    {},
		"slow":    {after: 5 * time.Second},
		"refused": {after: 100 * time.Millisecond, refused: errors.New("connection refused")},
	} {
		for _, client := range []string{"claude-code", "codex", "gemini-cli", "unheard-of"} {
			for _, expose := range []string{schema.ExposeDirect, schema.ExposeDiscover} {
				t.Run(name+" "+client+" "+expose, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { b.costsOnce(t, client, expose) })
				})
			}
		}
	}
}

func (b brokenServer) costsOnce(t *testing.T, client, expose string) {
	cfg := configOf(t, `{"expose":["`+expose+`"],"mcp":{"s":{"command":"none"}}}`)
	patience := map[string]time.Duration{"claude-code": 1200 * time.Millisecond, "codex": 500 * time.Millisecond, "gemini-cli": 2 * time.Second, "unheard-of": 150 * time.Millisecond}[client]
	if expose == schema.ExposeDiscover {
		patience = max(patience, callWait)
	}
	if b.refused != nil {
		patience = min(patience, b.after)
	}
	dir := t.TempDir()
	for run, want := range []time.Duration{patience, 0, 0} {
		waited, answer, _ := b.session(t, cfg, dir, client, time.Second)
		if waited != want {
			t.Errorf("session %d waits %v, want %v", run+1, waited, want)
		}
		if expose == schema.ExposeDiscover && !strings.Contains(answer, "s (still starting") && !strings.Contains(answer, "connection refused") {
			t.Errorf("session %d does not name the server: %s", run+1, answer)
		}
	}
	if b.refused != nil || b.after == 0 {
		return
	}
	if _, _, announced := b.session(t, cfg, dir, client, time.Minute); !announced && expose == schema.ExposeDirect {
		t.Error("the list of the slow server is not announced")
	}
	if waited, answer, _ := b.session(t, cfg, dir, client, 0); waited != 0 || !strings.Contains(answer, "look") && !strings.Contains(answer, "1 tool") {
		t.Errorf("after it was listed: waited %v for %s", waited, answer)
	}
}

// A host that is more patient than the one before waits as long as it is patient.
func TestPatientHostsWaitOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg, dir := configOf(t, `{"expose":["direct"],"mcp":{"s":{"command":"none"}}}`), t.TempDir()
		for _, step := range []struct {
			client string
			want   time.Duration
		}{{"codex", 500 * time.Millisecond}, {"claude-code", 1200 * time.Millisecond}, {"codex", 0}, {"claude-code", 0}} {
			if waited, _, _ := (brokenServer{}).session(t, cfg, dir, step.client, time.Second); waited != step.want {
				t.Errorf("%s waits %v, want %v", step.client, waited, step.want)
			}
		}
	})
}
