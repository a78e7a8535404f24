package credentials_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A reader is a user with a session at each replica, where he hears of changes.
type reader struct {
	user
	changes [2]atomic.Int64 // of tools, that the replicas announced
}

func (w *world) reader(name string) *reader {
	r := &reader{user: user{world: w, name: name, token: w.issuer.token(w.t, name), http: http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}}}}
	w.t.Cleanup(r.http.CloseIdleConnections)
	return r
}

// connect opens a session at a replica. It returns what the replica says of itself.
func (r *reader) connect(at int) string {
	to := r.replicas[at].Load()
	said, session, _ := r.post(r.t.Context(), to, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"proof","version":"1"}}}`)
	if session == "" {
		r.t.Fatalf("%s has no session: %s", r.name, said)
	}
	r.of[at], r.sessions[at] = to, session
	r.post(r.t.Context(), to, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r.listen(at, to, session)
	return said
}

func (r *reader) listen(at int, to *replica, session string) {
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.server.URL+"/mcp", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Mcp-Session-Id", session)
	resp, err := r.http.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), "notifications/tools/list_changed") {
				r.changes[at].Add(1)
			}
		}
	}()
	r.t.Cleanup(func() { cancel(); <-done })
}

func (r *reader) request(at int, method, params string) string {
	r.id++
	answer, _, status := r.post(r.t.Context(), r.replicas[at].Load(), r.sessions[at], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, r.id, method, params))
	if status != http.StatusOK {
		r.t.Errorf("%s: %s: HTTP status %d: %s", r.name, method, status, answer)
	}
	return answer
}

// everything returns all that a replica shows a user.
func (r *reader) everything(at int) string {
	tool := func(name, input string) string { return fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, input) }
	var all []string
	for _, asked := range [][2]string{
		{"tools/list", `{}`}, {"prompts/list", `{}`}, {"resources/list", `{}`}, {"resources/templates/list", `{}`},
		{"tools/call", tool("discover_tool", `{"query":"read the notes"}`)},
		{"tools/call", tool("discover_tool", `{"query":"s0"}`)},
		{"tools/call", tool("use_tool", `{"tool_name":"s0/read_anns","tool_input":{}}`)},
		{"tools/call", tool("use_tool", `{"tool_name":"s0/read","tool_input":{}}`)},
		{"tools/call", tool("s0__read", `{}`)},
		{"prompts/get", `{"name":"ask"}`}, {"resources/read", `{"uri":"notes://"}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"a","value":""}}`},
	} {
		all = append(all, r.request(at, asked[0], asked[1]))
	}
	return strings.Join(all, "\n")
}

var words = map[string]string{"ann": "alder", "bob": "birch", "cid": "cedar", "dan": "alder", "eve": ""}

// sees checks that a user is shown what is listed to him, and nothing of others.
func (r *reader) sees(at int, shown string, own ...string) {
	r.t.Helper()
	for _, word := range []string{"alder", "birch", "cedar", "dogwood"} {
		switch {
		case !slices.Contains(own, word) && strings.Contains(shown, word):
			r.t.Errorf("%s is shown %s at replica %d:\n%s", r.name, word, at, shown)
		case slices.Contains(own, word):
			for _, part := range []string{"s0__read_", "notes://", "ask_"} {
				if !strings.Contains(shown, part+word) {
					r.t.Errorf("%s is not shown %s at replica %d:\n%s", r.name, part+word, at, shown)
				}
			}
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// Each user is listed something else by one server, at two replicas: he sees that everywhere, and
// nothing of what others are listed, also when one list changes, after a new config and after a restart.
func TestListsAreOfEachUser(t *testing.T) {
	for _, kind := range []string{
		`"credentials": "user", "auth": {"client_id": "gw", "client_secret": "s"}`,
		`"isolation": "principal", "headers": {"Authorization": "none", "X-Key": "${user:KEY}"}`,
	} {
		t.Run(strings.Fields(kind)[0], func(t *testing.T) { testOwnLists(t, kind) })
	}
}

func testOwnLists(t *testing.T, entry string) {
	w := newWorldOf(t, time.Hour, `"startup_wait": "20s", "expose": ["discover", "direct"]`, entry+`, "load": "eager"`)
	w.listings = t.TempDir()
	s := w.services[0]
	s.lists = words
	for i := range w.replicas {
		w.replicas[i].Load().close()
		w.start(i)
	}
	readers := map[string]*reader{}
	for _, name := range []string{"ann", "bob", "cid", "dan", "eve"} {
		if name != "eve" { // who has no credentials
			w.logIn(s, name)
			w.setKey(name, "0")
		}
		readers[name] = w.reader(name)
	}
	all := func(after string) {
		t.Helper()
		for at := range w.replicas {
			for _, name := range []string{"ann", "bob", "eve", "cid", "dan"} {
				r := readers[name]
				said := ""
				if r.of[at] != w.replicas[at].Load() {
					said = r.connect(at)
				}
				r.sees(at, r.everything(at), words[name])
				for _, word := range []string{"alder", "birch", "cedar"} {
					if strings.Contains(said, word) && words[name] != word {
						t.Errorf("%s is introduced to %s", name, word)
					}
				}
			}
		}
		if t.Failed() {
			t.Fatal("after ", after)
		}
	}
	all("the start")
	all("all were listed")

	for at := range w.replicas { // ann's list changes, and then bob's
		before := map[string]int64{}
		for name, r := range readers {
			before[name] = r.changes[at].Load()
		}
		for _, name := range []string{"ann", "bob"} {
			s.list(name, words[name]+"_and_dogwood")
			r := readers[name]
			r.request(at, "tools/call", `{"name":"use_tool","arguments":{"tool_name":"s0/whoami","tool_input":{}}}`)
			eventually(t, name+" did not hear of the change", func() bool { return r.changes[at].Load() > before[name] })
			if tools := r.request(at, "tools/list", `{}`); !strings.Contains(tools, words[name]+"_and_dogwood") {
				t.Errorf("%s has the old tools: %s", name, tools)
			}
		}
		for _, name := range []string{"cid", "dan", "eve"} {
			if n := readers[name].changes[at].Load(); n != before[name] {
				t.Errorf("%s heard of %d changes of others", name, n-before[name])
			}
			readers[name].sees(at, readers[name].everything(at), words[name])
		}
		for _, name := range []string{"ann", "bob"} {
			s.list(name, words[name])
			r := readers[name]
			r.request(at, "tools/call", `{"name":"use_tool","arguments":{"tool_name":"s0/whoami","tool_input":{}}}`)
			eventually(t, name+"'s list is not as before", func() bool { return !strings.Contains(r.request(at, "tools/list", `{}`), "dogwood") })
		}
	}
	all("changes")

	for i := range w.replicas {
		if err := w.replicas[i].Load().agg.Apply(w.config(strings.Replace(w.text, "Says who calls.", "Says it.", 1))); err != nil {
			t.Fatal(err)
		}
	}
	all("a new config")
	for i := range w.replicas {
		w.replicas[i].Load().close()
		w.start(i)
	}
	eve := readers["eve"] // before others have listed
	eve.sees(0, eve.connect(0)+eve.everything(0))
	all("a restart")
}

// list changes what a user is listed.
func (s *service) list(user, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lists := map[string]string{}
	for of, w := range s.lists {
		lists[of] = w
	}
	lists[user] = word
	s.lists = lists
}
