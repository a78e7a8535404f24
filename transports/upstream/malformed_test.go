package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A logBuffer is a buffer that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// overEach calls a tool over each kind of link and passes the outcome to check. The upstream
// answers with answer, in which ID stands for the id of the call.
func overEach(t *testing.T, answer string, check func(t *testing.T, result json.RawMessage, err error, peer *recorder, log string)) {
	t.Helper()
	server := func(t *testing.T, reply func(w http.ResponseWriter, text string)) schema.Server {
		return script(t, &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
			reply(w, strings.ReplaceAll(answer, "ID", id))
		}})
	}
	for way, open := range map[string]func(t *testing.T, opts ConnOptions) *Conn{
		"a line": func(t *testing.T, opts ConnOptions) *Conn {
			c, _ := inMemory(t, schema.Server{}, opts, func(p *puppet, m wire.Message) {
				if m.IsRequest() {
					p.say(strings.ReplaceAll(answer, "ID", string(m.ID)))
				}
			})
			return c
		},
		"an HTTP body": func(t *testing.T, opts ConnOptions) *Conn {
			return dial(t, server(t, plain), opts)
		},
		"an event": func(t *testing.T, opts ConnOptions) *Conn {
			return dial(t, server(t, func(w http.ResponseWriter, text string) { events(w, "data: "+text+"\n\n") }), opts)
		},
	} {
		t.Run(way, func(t *testing.T) {
			var log logBuffer
			peer := &recorder{}
			c := open(t, ConnOptions{HandshakeOnly: true, Peer: peer, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			result, err := tool(t, c, "x", "{}")
			check(t, result, err, peer, log.String())
		})
	}
}

// Bytes that are not UTF-8 are replaced, because a host that decodes strictly would lose all servers.
func TestInvalidUTF8IsReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want string }{
		"a result":       {`{"jsonrpc":"2.0","id":ID,"result":{"caf` + "\xe9\":\"\xf0\x9f\xff\xffé" + `"}}`, "{\"caf\uFFFD\":\"\uFFFDé\"}"},
		"an error":       {`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"caf` + "\xe9" + `"}}`, "{\"code\":-1,\"message\":\"caf\uFFFD\"}"},
		"a batch":        {`[{"jsonrpc":"2.0","id":ID,"result":{"x":"` + "\xed\xa0\x80" + `"}}]`, "{\"x\":\"\uFFFD\"}"},
		"valid UTF-8":    {`{"jsonrpc":"2.0","id":ID,"result":{"x":"é日本😀\ud800"}}`, `{"x":"é日本😀\ud800"}`},
		"a notification": {`[{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + "\x80" + `"}},{"jsonrpc":"2.0","id":ID,"result":{}}]`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, c.answer, func(t *testing.T, result json.RawMessage, err error, peer *recorder, log string) {
				var rpc *wire.Error
				if errors.As(err, &rpc) {
					result, err = rpc.JSON(), nil
				}
				if err != nil || string(result) != c.want {
					t.Errorf("got %q, %v, want %q", result, err, c.want)
				}
				if got := peer.all(); name == "a notification" && (len(got) != 1 || got[0] != "notifications/x {\"x\":\"\uFFFD\"}") {
					t.Errorf("the host got %q", got)
				}
				if replaced := strings.Contains(log, "not UTF-8"); replaced == (name == "valid UTF-8") {
					t.Errorf("the log says %s", log)
				}
			})
		})
	}
}

// A connection logs its first message that is not UTF-8, and at its end how many there were.
func TestInvalidUTF8IsCounted(t *testing.T) {
	t.Parallel()
	var log logBuffer
	c, _ := inMemory(t, schema.Server{}, ConnOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(p *puppet, m wire.Message) {
		p.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"x":"` + "\xff" + `"}}`)
	})
	for range 20 {
		if _, err := tool(t, c, "x", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(log.String(), "UTF-8"); got != 1 {
		t.Errorf("%d lines: %s", got, &log)
	}
	c.Close()
	if !strings.Contains(log.String(), "count=20") {
		t.Errorf("got %s", &log)
	}
}

// A JSON-RPC error in the body of an error status is returned.
func TestMalformedErrorsWithAStatus(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"caf` + "\xe9" + `"}}`:     "{\"code\":-1,\"message\":\"caf\uFFFD\"}",
		"\ufeff" + `{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"m"}}`:          `{"code":-1,"message":"m"}`,
		`{"jsonrpc":"2.0","id":ID,"error":"it broke"}`:                                    `{"code":-32603,"message":"it broke","data":"it broke"}`,
		`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"m","data":` + deep + `}}`: "",
	} {
		s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", id))
		}}
		c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
		_, err := tool(t, c, "x", "{}")
		if want == "" {
			wantFailure(t, err, transports.CodeUnreachable, transports.Unknown)
			continue
		}
		if rpc, ok := errors.AsType[*wire.Error](err); !ok || string(rpc.JSON()) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// An answer that is nested too deeply for recursive readers fails its call.
func TestDeepAnswersFailTheirCall(t *testing.T) {
	t.Parallel()
	nest := func(levels int) string { return strings.Repeat(`{"a":[`, levels/2) + strings.Repeat(`]}`, levels/2) }
	for name, c := range map[string]struct {
		answer string
		fails  bool
	}{
		"a result of the largest depth": {`{"jsonrpc":"2.0","id":ID,"result":` + nest(maxNesting) + `}`, false},
		"a batch with it":               {`[{"jsonrpc":"2.0","id":ID,"result":` + nest(maxNesting) + `}]`, false},
		"a result one level deeper":     {`{"jsonrpc":"2.0","id":ID,"result":[` + nest(maxNesting) + `]}`, true},
		"a result much deeper":          {`{"jsonrpc":"2.0","result":` + nest(9000) + `,"id":ID}`, true},
		"an error":                      {`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"m","data":` + nest(maxNesting) + `}}`, true},
		"a batch":                       {`[{"jsonrpc":"2.0","id":ID,"result":[` + nest(maxNesting) + `]}]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, c.answer, func(t *testing.T, result json.RawMessage, err error, _ *recorder, _ string) {
				if !c.fails {
					if err != nil || string(result) != nest(maxNesting) {
						t.Errorf("got %s, %v", result, err)
					}
					return
				}
				if f := wantFailure(t, err, transports.CodeProtocol, transports.Executed); !strings.Contains(f.Error(), "deeper than 512 levels") {
					t.Errorf("got %v", f)
				}
			})
		})
	}
	notice := `[{"jsonrpc":"2.0","method":"notifications/x","params":{"a":` + nest(600) + `}},{"jsonrpc":"2.0","id":ID,"result":{}}]`
	t.Run("a notification", func(t *testing.T) {
		overEach(t, notice, func(t *testing.T, _ json.RawMessage, err error, peer *recorder, log string) {
			if got := peer.all(); err != nil || len(got) > 0 || !strings.Contains(log, "nested too deeply") {
				t.Errorf("got %q, %v, and the log says %s", got, err, log)
			}
		})
	})
	t.Run("a list", func(t *testing.T) {
		c, _ := inMemory(t, schema.Server{}, ConnOptions{}, func(p *puppet, m wire.Message) {
			p.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[` + nest(maxNesting) + `]}}`)
		})
		_, err := c.List(t.Context(), "tools/list", "tools", nil)
		wantFailure(t, err, transports.CodeProtocol, transports.Executed)
	})
}

// A server that stores numbers as doubles may return ids and progress tokens as 1.0 for 1.
func TestIDsAreComparedAsNumbers(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"ID", "ID.0", "ID.00", "IDe0", "IDE+0", "ID0e-1", `"ID"`} {
		c, _ := inMemory(t, schema.Server{}, ConnOptions{}, func(p *puppet, m wire.Message) {
			if !m.IsRequest() {
				return
			}
			id := strings.ReplaceAll(form, "ID", string(m.ID))
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":1}}`)
			p.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `.5,"result":{"x":2}}`)
			p.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"x":1}}`)
		})
		peer, answered := &recorder{}, make(chan string, 1)
		c.Start(&Call{Method: "x", Params: []byte(`{"_meta":{"progressToken":"t"}}`), Peer: peer, Done: func(result json.RawMessage, err error) {
			answered <- fmt.Sprint(string(result), err)
		}})
		if got := <-answered; got != `{"x":1}<nil>` {
			t.Errorf("%s: got %s", form, got)
		}
		if got := peer.all(); len(got) != 1 || got[0] != `notifications/progress {"progressToken":"t","progress":1}` {
			t.Errorf("%s: progress %q", form, got)
		}
	}
}

// An invalid answer that names the id of its call fails that call, which would otherwise wait
// until its timeout.
func TestMalformedAnswersEndTheirCall(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"an id twice":            `{"jsonrpc":"2.0","id":ID,"id":ID,"result":{}}`,
		"two ids, ours is last":  `{"jsonrpc":"2.0","id":999,"id":ID,"result":{}}`,
		"two ids, ours is first": `{"jsonrpc":"2.0","id":ID,"result":{},"id":999}`,
		"a batch in a batch":     `[[{"jsonrpc":"2.0","id":ID,"result":{}}]]`,
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, answer, func(t *testing.T, _ json.RawMessage, err error, _ *recorder, _ string) {
				if f, ok := errors.AsType[*transports.Failure](err); !ok || f.Code != transports.CodeProtocol {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	overEach(t, `{"jsonrpc":"2.0","id":ID,"error":"it broke"}`, func(t *testing.T, _ json.RawMessage, err error, _ *recorder, _ string) {
		if got, want := string(transports.WireError(err).JSON()), `{"code":-32603,"message":"it broke","data":"it broke"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	overEach(t, "\ufeff"+`{"jsonrpc":"2.0","id":ID,"result":{"x":1.0}}`, func(t *testing.T, result json.RawMessage, err error, _ *recorder, _ string) {
		if err != nil || string(result) != `{"x":1.0}` {
			t.Errorf("got %s, %v", result, err)
		}
	})
}
