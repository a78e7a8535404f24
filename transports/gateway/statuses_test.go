package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A statusRow is a row of the table of docs/gateway.md.
type statusRow struct{ status, code, id, outcome, when string }

func statusRows(t *testing.T) (rows []statusRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| status | code | id | outcome | when |\n|---|---|---|---|---|\n")
	if !ok {
		t.Fatal("docs/gateway.md has no table of statuses")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 {
			t.Fatalf("got row %s", line)
		}
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
		}
		rows = append(rows, statusRow{cells[0], cells[1], strings.Trim(cells[2], "`"), strings.Trim(cells[3], "`"), cells[4]})
	}
	return rows
}

const cutBody = `{"jsonrpc":"2.0","id":7,"method":"tools/call","par`

func cut(path string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 1000\r\n\r\n" + cutBody
}

// statusProbes has a function that causes each row, by the beginning of its last cell.
var statusProbes = map[string]func(p *statusProbe) answer{
	"the result, alone":         func(p *statusProbe) answer { return p.call("x") },
	"before 2026-07-28: params": func(p *statusProbe) answer { return p.call("unfit") },
	"an error of the server":    func(p *statusProbe) answer { return p.call("refuses") },
	"dynmcp could not have":     func(p *statusProbe) answer { return p.call("lost") },
	"`OPTIONS`; a `GET`": func(p *statusProbe) answer {
		if a := p.get("/mcp/git"); a.status != 200 {
			return a
		}
		return p.do("OPTIONS", "/mcp", "")
	},
	"a notification, an answer": func(p *statusProbe) answer {
		return p.post("/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", p.session)
	},
	"the answer to a `POST /mcp/NAME/message`": func(p *statusProbe) answer { return p.post("/mcp/git/message", call(7, "x")) },
	"`DELETE` of a session": func(p *statusProbe) answer {
		return p.do("DELETE", "/mcp", "", "Authorization", "Bearer secret", "Mcp-Session-Id", p.session)
	},
	"no JSON":                   func(p *statusProbe) answer { return p.post("/mcp", `{"jsonrpc":`) },
	"JSON that is no message":   func(p *statusProbe) answer { return p.post("/mcp", `{"foo":1}`) },
	"a batch, but in a session": func(p *statusProbe) answer { return p.post("/mcp", "["+call(7, "x")+"]", "Mcp-Session-Id", p.session) },
	"a request whose id another": func(p *statusProbe) answer {
		ended := make(chan answer)
		go func() { ended <- p.call("wait") }()
		first := <-p.waiting
		a := p.call("x")
		first.Reply(json.RawMessage(`{}`), nil)
		<-ended
		return a
	},
	"no `Mcp-Session-Id`":                 func(p *statusProbe) answer { return p.post("/mcp", call(7, "x")) },
	"a protocol version that is not know": func(p *statusProbe) answer { return p.call("x", "MCP-Protocol-Version", "1999-01-01") },
	"a `Last-Event-ID`": func(p *statusProbe) answer {
		return p.get("/mcp", "Mcp-Session-Id", p.session, "Last-Event-ID", "77-1")
	},
	"2026-07-28: headers that do": func(p *statusProbe) answer { return p.modern("tools/call", `"name":"x",`, "Mcp-Name", "y") },
	"2026-07-28: `_meta` without": func(p *statusProbe) answer {
		return p.post("/mcp", call(7, "x"), "MCP-Protocol-Version", transports.StatelessVersion)
	},
	"2026-07-28: the server does not": func(p *statusProbe) answer { return p.modern("tools/call", `"name":"refuses",`) },
	"2026-07-28: a protocol version": func(p *statusProbe) answer {
		body, headers := modern(7, "tools/list", "")
		headers[1] = "2027-01-01"
		return p.post("/mcp", strings.Replace(body, transports.StatelessVersion, headers[1], 1), headers...)
	},
	"what is no HTTP request":    func(p *statusProbe) answer { return p.bytes("GET / HTTP/1.1\r\n\r\n") },
	"no token that is good":      func(p *statusProbe) answer { return p.do("POST", "/mcp", call(7, "x")) },
	"a `Host`, an `Origin`":      func(p *statusProbe) answer { return p.call("x", "Host", "evil.example") },
	"no such session":            func(p *statusProbe) answer { p.session = "nobody"; return p.call("x") },
	"a request that comes of":    func(p *statusProbe) answer { return p.post("/mcp", call(7, "x"), "Dynmcp-Lineage", "x") },
	"no such server":             func(p *statusProbe) answer { return p.post("/mcp/svn", call(7, "x")) },
	"no such route":              func(p *statusProbe) answer { return p.post("/rpc", call(7, "x")) },
	"2026-07-28: no such method": func(p *statusProbe) answer { return p.modern("no/such", "") },
	"a method of HTTP": func(p *statusProbe) answer {
		return p.do("PUT", "/mcp", call(7, "x"), "Authorization", "Bearer secret")
	},
	"`Accept` allows no form": func(p *statusProbe) answer { return p.call("x", "Accept", "text/html") },
	"a body that HTTP does": func(p *statusProbe) answer {
		return p.bytes("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nAccept: */*\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\nzz\r\n", len(cutBody), cutBody))
	},
	"the body did not arrive": func(p *statusProbe) answer { return p.bytes(cut("/mcp")) },
	"`initialize` in a session": func(p *statusProbe) answer {
		return p.post("/mcp", strings.Replace(initialize, `"id":0`, `"id":7`, 1), "Mcp-Session-Id", p.session)
	},
	"a request of more than": func(p *statusProbe) answer { return p.call(strings.Repeat("x", 1<<20)) },
	"a `Content-Type`":       func(p *statusProbe) answer { return p.call("x", "Content-Type", "text/plain") },
	"an `Expect`": func(p *statusProbe) answer {
		return p.bytes("POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 7\r\nContent-Length: 0\r\n\r\n")
	},
	"a header of more than 64 KiB": func(p *statusProbe) answer {
		return p.bytes("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", maxHeader+5<<10))
	},
	"an answer of more than": func(p *statusProbe) answer {
		if a := p.post("/mcp/git/message", call(7, "large")); a.status != 500 {
			return a
		}
		return p.call("large")
	},
	"a fault in dynmcp": func(p *statusProbe) answer {
		p.g.opts.Open = func(Edge, string, string, bool) (*host.Session, func(context.Context)) { panic("a fault") }
		return p.modern("tools/call", `"name":"x",`)
	},
	"a `Transfer-Encoding`": func(p *statusProbe) answer {
		return p.bytes("POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: 7\r\n\r\n")
	},
	"`subscriptions/listen` when": func(p *statusProbe) answer {
		defer p.open("GET", "/mcp", "", "Authorization", "Bearer secret", "Accept", "text/event-stream", "Mcp-Session-Id", p.session).Body.Close()
		return p.modern("subscriptions/listen", `"notifications":{},`)
	},
	"a `GET` when": func(p *statusProbe) answer {
		defer p.open("GET", "/mcp/git", "", "Authorization", "Bearer secret", "Accept", "text/event-stream").Body.Close()
		return p.get("/mcp/git")
	},
	"`initialize` when there": func(p *statusProbe) answer {
		for _, s := range p.g.sessions.all() {
			s.use() // so that none can make room
			defer s.done()
		}
		p.g.sessions.mu.Lock()
		p.g.sessions.most = 0
		p.g.sessions.mu.Unlock()
		return p.post("/mcp", strings.Replace(initialize, `"id":0`, `"id":7`, 1))
	},
	"a body that would be": func(p *statusProbe) answer {
		p.g.memory = membudget.New(1, nil)
		return p.call("x")
	},
	"a body without a length": func(p *statusProbe) answer { return p.unlimited("/mcp") },
	"a new connection": func(p *statusProbe) answer {
		p.ln.conns.mu.Lock()
		p.ln.conns.most, p.ln.conns.reserved = 2, 1
		p.ln.conns.mu.Unlock()
		defer p.open("GET", "/mcp", "", "Authorization", "Bearer secret", "Accept", "text/event-stream", "Mcp-Session-Id", p.session).Body.Close()
		return p.call("x")
	},
	"the tree: a body without": func(p *statusProbe) answer { return p.unlimited("/meta_call") },
	"dynmcp ends": func(p *statusProbe) answer {
		return p.ending("/mcp/git/message", call(7, "x"))
	},
	"`GET /health` of a replica": func(p *statusProbe) answer {
		close(p.g.leaving)
		a := p.do("GET", "/health", "")
		p.g.leaving = make(chan struct{})
		return a
	},
	"a version of HTTP": func(p *statusProbe) answer { return p.bytes("GET / HTTP/3.0\r\nHost: localhost\r\n\r\n") },

	"the replica that had the session was gone": func(p *statusProbe) answer { p.elsewhere(gone); return p.call("x") },
	"another replica had the request":           func(p *statusProbe) answer { p.elsewhere(until(p.g.forwarder.endFinishing)); return p.call("x") },
	"the replica that had the session is gone":  func(p *statusProbe) answer { p.elsewhere(gone); return p.get("/mcp", "Mcp-Session-Id", p.session) },
	"a `GET` that another replica had": func(p *statusProbe) answer {
		p.elsewhere(until(p.g.forwarder.endLasting))
		return p.get("/mcp", "Mcp-Session-Id", p.session)
	},

	"the tree: the body is no":    func(p *statusProbe) answer { return p.post("/meta_call", `[]`) },
	"the tree: `path` is":         func(p *statusProbe) answer { return p.post("/meta_call", `{"path":"/node"}`) },
	"the tree: nothing has":       func(p *statusProbe) answer { return p.post("/meta_call", `{"path":"/nothing"}`) },
	"the tree: not `POST`":        func(p *statusProbe) answer { return p.get("/meta_tree") },
	"the tree: the body did":      func(p *statusProbe) answer { return p.bytes(cut("/meta_call")) },
	"the tree: more than":         func(p *statusProbe) answer { return p.post("/meta_call", `{"path":"/`+strings.Repeat("x", 1<<20)+`"}`) },
	"the tree: the arguments":     func(p *statusProbe) answer { return p.post("/meta_call", `{"path":"/unfit"}`) },
	"the tree: the server fail":   func(p *statusProbe) answer { return p.post("/meta_call", `{"path":"/lost"}`) },
	"the tree: the replica that":  func(p *statusProbe) answer { return p.leave(gone) },
	"the tree: another replica":   func(p *statusProbe) answer { return p.leave(until(p.g.forwarder.endFinishing)) },
	"the tree: dynmcp ends":       func(p *statusProbe) answer { return p.ending("/meta_call", `{"path":"/x"}`) },
	"the tree: the server did no": func(p *statusProbe) answer { return p.post("/meta_call", `{"path":"/slow"}`) },
}

// Hosts get every row of the table in docs/gateway.md. With not_sent, no server gets the request.
func TestStatusesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range statusRows(t) {
		var probe func(*statusProbe) answer
		for prefix, f := range statusProbes {
			if strings.HasPrefix(row.when, prefix) {
				if probe != nil {
					t.Errorf("two probes for %q", row.when)
				}
				probe, seen[prefix] = f, true
			}
		}
		if probe == nil {
			t.Errorf("no probe for the row %+v", row)
			continue
		}
		t.Run(row.when, func(t *testing.T) {
			t.Parallel()
			p := newStatusProbe(t, func(g *Gateway) {
				g.opts.Enter = func(_ string, h http.Header) error {
					if h.Get("Dynmcp-Lineage") != "" {
						return errors.New("the config reaches itself")
					}
					return nil
				}
				if strings.Contains(row.when, "did not arrive") {
					g.bodyTimeout = 50 * time.Millisecond
				}
			})
			got := probe(p)
			gotRow := rowOf(got)
			want := row
			want.when = ""
			if strings.HasPrefix(row.code, "5101 to ") {
				want.code, want.outcome = "5102", "unknown"
			}
			if want.code == "the server's" {
				want.code = "-32602"
			}
			if gotRow != want {
				t.Errorf("got %+v, want %+v: %s", gotRow, want, got.body)
			}
			if again := got.header.Get("Retry-After") != ""; again != strings.Contains(row.when, "`Retry-After`") || again && row.outcome != "not_sent" {
				t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
			}
			if n := p.sent.Load(); n > 0 && row.outcome == "not_sent" {
				t.Errorf("%d requests reached a server", n)
			}
		})
	}
	for prefix := range statusProbes {
		if !seen[prefix] {
			t.Errorf("the table has no row %q", prefix)
		}
	}
}

// rowOf returns the row of the table for a response.
func rowOf(a answer) statusRow {
	row := statusRow{strconv.Itoa(a.status), "–", "–", "–", ""}
	body := []byte(a.body)
	failure := wire.Get(body, "error")
	switch id := string(wire.Get(body, "id")); {
	case wire.Get(body, "jsonrpc") == nil && failure != nil:
		row.id = "tree"
	case id == "7":
		row.id = "its own"
	case id != "":
		row.id = id
	}
	if failure != nil {
		row.code = string(wire.Get(failure, "code"))
		if outcome, ok := wire.Text(wire.Get(failure, "data", "outcome")); ok {
			row.outcome = outcome
		}
	}
	return row
}

// codeNames are the JSON-RPC codes by their names in the source.
var codeNames = map[string]int64{
	"wire.CodeParse": wire.CodeParse, "wire.CodeInvalidRequest": wire.CodeInvalidRequest, "wire.CodeInvalidParams": wire.CodeInvalidParams,
	"wire.CodeInternal": wire.CodeInternal, "codeHeaderMismatch": codeHeaderMismatch,
	"transports.CodeTooLarge": transports.CodeTooLarge, "transports.CodeOverloaded": transports.CodeOverloaded, "transports.CodeShuttingDown": transports.CodeShuttingDown,
}

// The table has all statuses in the source of the gateway, and all pairs of status and code in
// its denials.
func TestTheTableHasAllStatuses(t *testing.T) {
	t.Parallel()
	rows := statusRows(t)
	has := func(fits func(statusRow) bool) bool { return slices.ContainsFunc(rows, fits) }
	statuses := map[string]string{}
	for n := 100; n < 600; n++ {
		statuses["http.Status"+strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(n))] = strconv.Itoa(n)
	}
	files := token.NewFileSet()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			name := name(n)
			if !strings.HasPrefix(name, "http.Status") {
				return true
			}
			looked++
			if status := statuses[name]; !has(func(r statusRow) bool { return r.status == status }) {
				t.Errorf("%s: the table has no %s", files.Position(n.Pos()), name)
			}
		case *ast.CallExpr:
			if f := name(n.Fun); strings.HasSuffix(f, ".WriteHeader") || f == "writeJSON" || f == "http.Error" {
				for _, arg := range n.Args {
					if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.INT {
						t.Errorf("%s: a status has no name", files.Position(n.Pos()))
					}
				}
			}
		case *ast.CompositeLit:
			if name(n.Type) != "denial" || len(n.Elts) == 0 {
				return true
			}
			member := map[string]string{"code": "wire.CodeInvalidRequest"}
			for _, e := range n.Elts {
				pair := e.(*ast.KeyValueExpr)
				member[name(pair.Key)] = name(pair.Value)
			}
			code, known := codeNames[member["code"]]
			status := statuses[member["status"]]
			if !known || member["status"] != "" && member["status"] != "status" && !has(func(r statusRow) bool { return r.status == status && r.code == strconv.FormatInt(code, 10) }) {
				t.Errorf("%s: the table has no %s with %s", files.Position(n.Pos()), member["status"], member["code"])
			}
		}
		return true
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, look)
	}
	if looked < 30 {
		t.Errorf("only %d statuses were found", looked)
	}
}

// name returns the name of an expression of the form a or a.b, otherwise "".
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return name(e.X) + "." + e.Sel.Name
	}
	return ""
}
