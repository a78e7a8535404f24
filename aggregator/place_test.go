package aggregator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	browser "github.com/dynmcp/dynmcp/modules/browser/tools"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// patience ends a test that hangs; nothing is measured by it.
const patience = 2 * time.Minute

// A cluster has replicas in this process and their leases. It grants a lease that no replica
// has, as package cluster does, without NATS and without expiry.
type cluster struct {
	t        *testing.T
	replicas []*replica
	state    *memkv.Connection
	serving  sync.WaitGroup
	opened   func(to *replica) // before a replica serves another; may be nil

	mu      sync.Mutex
	leases  map[string]*lease
	changed chan struct{} // closed and replaced when leases are
	asked   []string      // keys that were to be placed
}

type replica struct {
	*Aggregator
	name     string
	draining bool
	dead     bool
	links    []io.Closer // of other replicas to this one
}

type lease struct {
	of           *replica
	uses         int
	lost, moving chan struct{}
}

// newCluster starts replicas, named a, b and so on, of one config.
func newCluster(t *testing.T, n int, entries string) *cluster {
	c := &cluster{t: t, leases: map[string]*lease{}, changed: make(chan struct{})}
	cfg := configOf(t, `{"mcp":{`+entries+`}}`)
	keys := seal.Random()
	c.state = memkv.New().Connect()
	tasks, err := c.state.Bucket(t.Context(), "tasks")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := &replica{name: string(rune('a' + i))}
		r.Aggregator, err = New(cfg, Options{
			Version: "1", Keys: keys, Replica: r.name, Tasks: tasks, Cluster: seat{c, r}})
		if err != nil {
			t.Fatal(err)
		}
		r.StartShared()
		c.replicas = append(c.replicas, r)
	}
	t.Cleanup(func() {
		for _, r := range c.replicas {
			r.Close()
		}
		c.serving.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		for name, l := range c.leases {
			t.Errorf("%s was not released by %s", name, l.of.name)
		}
	})
	return c
}

// A seat is the place of a replica in a cluster. It implements Cluster.
type seat struct {
	*cluster
	of *replica
}

func (s seat) Place(ctx context.Context, server schema.Server, principal string) (*Placement, error) {
	return s.place(ctx, s.of, server.Name, principal)
}

// place grants a replica the lease of a server that no replica runs, or connects it to the
// replica that runs the server.
func (c *cluster) place(ctx context.Context, r *replica, server, principal string) (*Placement, error) {
	key := server + "/" + principal
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, key)
	for {
		l, changed := c.leases[key], c.changed
		switch {
		case l == nil && !r.draining && !r.dead:
			l = &lease{of: r, lost: make(chan struct{}), moving: make(chan struct{})}
			c.leases[key] = l
			l.uses++
			close(c.changed)
			c.changed = make(chan struct{})
			return &Placement{Release: func() { c.release(key, l) }, Lost: l.lost, Moving: l.moving}, nil
		case l != nil && l.of == r && !r.draining && !r.dead:
			l.uses++
			return &Placement{Release: func() { c.release(key, l) }, Lost: l.lost, Moving: l.moving}, nil
		case l != nil && l.of != r && !l.of.draining && !l.of.dead:
			ours, theirs := mcptest.Pipe()
			l.uses++
			l.of.links = append(l.of.links, ours)
			c.serving.Go(func() {
				defer c.release(key, l)
				if c.opened != nil {
					c.opened(l.of)
				}
				_ = l.of.ServeReplica(context.Background(), theirs, server, principal, Placement{Lost: l.lost, Moving: l.moving})
			})
			return &Placement{Stream: ours, Moving: l.moving}, nil
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (c *cluster) ResultOf(_ context.Context, replica, principal, handle string) (json.RawMessage, int, bool) {
	for _, r := range c.replicas {
		if r.name == replica {
			return r.Result(principal, handle)
		}
	}
	return nil, 0, false
}

func (c *cluster) release(key string, l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.uses--; l.uses == 0 && c.leases[key] == l {
		delete(c.leases, key)
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// runner returns the replica that has the lease of a server.
func (c *cluster) runner(key string) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.leases[key]; l != nil {
		return l.of
	}
	c.t.Fatalf("nobody runs %s", key)
	return nil
}

func (c *cluster) other(than *replica) *replica {
	return c.replicas[slices.IndexFunc(c.replicas, func(r *replica) bool { return r != than })]
}

// drain makes a replica hand its servers over.
func (c *cluster) drain(r *replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.draining = true
	for _, l := range c.leases {
		if l.of == r {
			close(l.moving)
		}
	}
}

// kill ends a replica without notice: its links break, and its servers are killed.
func (c *cluster) kill(r *replica) {
	c.mu.Lock()
	r.dead = true
	links := r.links
	for _, l := range c.leases {
		if l.of == r {
			close(l.lost)
		}
	}
	c.mu.Unlock()
	for _, link := range links {
		link.Close()
	}
}

// call calls a tool as a user on a replica, and returns the text of the result.
func (r *replica) call(ctx context.Context, user, tool, arguments string) (text string, failed bool, err error) {
	result, err := r.requestAs(ctx, user, browser.Target, "tools/call", fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments))
	if err != nil {
		return "", false, err
	}
	var texts []string
	for content := range wire.Elements(wire.Get(result, "content")) {
		text, _ := wire.Text(wire.Get(content, "text"))
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), string(wire.Get(result, "isError")) == "true", nil
}

// echo makes a replica call echo with a nonce, and fails the test unless the result has it.
func (c *cluster) echo(r *replica, user, server string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	nonce := rand.Text()
	text, failed, err := r.call(ctx, user, server+"/echo", `{"nonce":"`+nonce+`"}`)
	if err != nil || failed || !strings.Contains(text, nonce) {
		c.t.Errorf("echo by way of %s: %q, %v", r.name, text, err)
	}
}

// placedFake returns the entry of a fakemcp child, and its ledger.
func placedFake(t *testing.T, name, more string, args ...string) (entry string, ledger mcptest.Ledger) {
	t.Helper()
	ledger = mcptest.NewLedger(t)
	marker := rand.Text()
	t.Cleanup(func() {
		mcptest.Eventually(t, "all processes are gone", func() bool { return len(mcptest.Processes("PLACED="+marker)) == 0 })
	})
	words, err := json.Marshal(append([]string{"-name", name, "-ledger", ledger.Path}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`%q:{"command":%q,"args":%s,"env":{"PLACED":%q},"description":"A fake."%s}`, name, mcptest.Fake(t), words, marker, more), ledger
}

// A placed server has one process for all replicas, even if many call it at once.
func TestPlacedServerRunsOnce(t *testing.T) {
	t.Parallel()
	entry, ledger := placedFake(t, "up", "")
	c := newCluster(t, 3, entry)
	var calls sync.WaitGroup
	for _, r := range c.replicas {
		for range 20 {
			calls.Go(func() { c.echo(r, "", "up") })
		}
	}
	calls.Wait()
	if n := ledger.Count("start"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
	if n := ledger.Count("call echo"); n != 60 {
		t.Errorf("%d calls reached it, want 60", n)
	}
}

// The calls in flight at a replica that is killed have an unknown outcome. The next call
// finds the server elsewhere.
func TestReplicaIsKilled(t *testing.T) {
	t.Parallel()
	entry, ledger := placedFake(t, "up", "")
	c := newCluster(t, 3, entry)
	c.echo(c.replicas[0], "", "up")
	from := c.replicas[1]
	c.echo(from, "", "up")
	type answer struct {
		text   string
		failed bool
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		text, failed, err := from.call(t.Context(), "", "up/sleep", `{"ms":0}`)
		answered <- answer{text, failed, err}
	}()
	ledger.WaitFor("call sleep", 1)
	c.kill(c.replicas[0])
	if got := <-answered; got.err != nil || !got.failed || !strings.Contains(got.text, "outcome unknown") {
		t.Errorf("the call in flight: %+v", got)
	}
	c.echo(from, "", "up")
	c.echo(c.replicas[2], "", "up")
	if n := ledger.Count("start"); n != 2 {
		t.Errorf("it was started %d times, want 2", n)
	}
}

// A replica that drains hands its servers over: calls in flight end there, later ones wait
// for the new place, no call is lost, and two processes never run at once.
func TestDrainLosesNoCall(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	entry, ledger := placedFake(t, "up", "")
	c := newCluster(t, 3, entry)
	for _, r := range c.replicas {
		c.echo(r, "", "up")
	}
	first := c.runner("up/")
	var calls sync.WaitGroup
	for _, r := range c.replicas {
		calls.Go(func() { // the call is in flight when the replica begins to drain
			text, failed, err := r.call(t.Context(), "", "up/sleep", fmt.Sprintf(`{"until":%q}`, gate.Path))
			if err != nil || failed {
				t.Errorf("the call in flight by way of %s: %q, %v", r.name, text, err)
			}
		})
	}
	ledger.WaitFor("call sleep", 3)
	c.drain(first)
	for _, r := range c.replicas {
		for range 10 {
			calls.Go(func() { c.echo(r, "", "up") })
		}
	}
	gate.Open()
	calls.Wait()
	if c.runner("up/") == first {
		t.Error("it is where it was")
	}
	var lives []string
	for _, event := range ledger.Events() {
		if word, _, _ := strings.Cut(event, " "); word == "start" || word == "exit" {
			lives = append(lives, word)
		}
	}
	if got := strings.Join(lives, " "); got != "start exit start" && got != "start start" { // it was killed, being slow to end
		t.Errorf("processes: %s", got)
	}
}

// A replica that begins to drain before it has started a server for another replica says so
// at once. It must not wait for the lease, which is free only after it has released its own.
func TestDrainWhileItIsAskedFor(t *testing.T) {
	t.Parallel()
	entry, ledger := placedFake(t, "up", "")
	c := newCluster(t, 2, entry)
	from, asked := c.replicas[0], c.replicas[1]
	c.opened = func(to *replica) {
		if to == asked {
			c.drain(asked)
		}
	}
	c.mu.Lock()
	c.leases["up/"] = &lease{of: asked, lost: make(chan struct{}), moving: make(chan struct{})}
	c.mu.Unlock()
	c.echo(from, "", "up")
	if runner := c.runner("up/"); runner != from {
		t.Errorf("it runs on %s", runner.name)
	}
	if n := ledger.Count("start"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// A server whose lease is lost is killed at once, with the processes that it started, even if
// they ignore SIGTERM.
func TestLostServerIsKilled(t *testing.T) {
	t.Parallel()
	entry, ledger := placedFake(t, "up", "")
	c := newCluster(t, 2, entry)
	r := c.replicas[0]
	for _, arguments := range []string{`{"mode":"ignore-term"}`, `{"mode":"ignore-term","setsid":true}`} {
		if text, failed, err := r.call(t.Context(), "", "up/spawn", arguments); failed || err != nil {
			t.Fatalf("spawn: %s, %v", text, err)
		}
	}
	var sleeping sync.WaitGroup
	sleeping.Go(func() { _, _, _ = r.call(t.Context(), "", "up/sleep", `{"ms":0}`) })
	ledger.WaitFor("call sleep", 1)
	c.kill(r)
	sleeping.Wait()
	c.echo(c.other(r), "", "up") // waits for the end of the old server
	if n := ledger.Count("exit"); n != 0 {
		t.Errorf("it was asked to end:\n%s", strings.Join(ledger.Events(), "\n"))
	}
}

// A server with isolation "principal" runs once for each user in the whole cluster. One with
// isolation "session" is not placed.
func TestPlacedForEachPrincipal(t *testing.T) {
	t.Parallel()
	user, users := placedFake(t, "user", `,"isolation":"principal"`)
	session, _ := placedFake(t, "session", `,"isolation":"session"`)
	each, everywhere := placedFake(t, "each", `,"place":"each"`)
	c := newCluster(t, 3, strings.Join([]string{user, session, each}, ","))
	for _, r := range c.replicas {
		for _, name := range []string{"alice", "bob"} {
			c.echo(r, name, "user")
			c.echo(r, name, "session")
		}
		c.echo(r, "alice", "each")
	}
	if n := users.Count("start"); n != 2 {
		t.Errorf("two users have %d processes", n)
	}
	if n := everywhere.Count("start"); n != 3 {
		t.Errorf("three replicas have %d processes", n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range c.asked {
		if key != "user/alice" && key != "user/bob" {
			t.Errorf("%s was placed", key)
		}
	}
}

// A server that cannot be started on another replica fails with that replica's error, as if
// it ran here, and the back-off there is not added to one here.
func TestFailureElsewhere(t *testing.T) {
	t.Parallel()
	entry, _ := placedFake(t, "up", `,"load_budget":0`, "-fault", "exit-now")
	c := newCluster(t, 2, entry)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c.mu.Lock()
	c.leases["up/"] = &lease{of: c.replicas[0], uses: 1, lost: make(chan struct{}), moving: make(chan struct{})}
	c.mu.Unlock()
	defer c.release("up/", c.leases["up/"])
	text, failed, err := c.replicas[1].call(ctx, "", "up/echo", `{}`)
	if err != nil || !failed || !strings.Contains(text, "exited with status 7") || !strings.Contains(text, "not_sent") {
		t.Errorf("got %q, %v", text, err)
	}
}

// A server of both eras is used in the era of the first host, on whichever replica, and
// however long the server takes to start.
func TestEraOfTheReplicaThatAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, `"up":{"command":"none","description":"It is scripted."}`)
		from, asked := c.replicas[0], c.replicas[1]
		asked.fleet.Open = func(server schema.Server, opts upstream.ConnOptions) (*upstream.Conn, error) {
			time.Sleep(4 * time.Second) // longer than a running server may take for server/discover
			up := newActor([]string{"upstream", "2025-11-25,2026-07-28", `{"tools":{}}`})
			ours, theirs := net.Pipe()
			up.enter(theirs)
			c.serving.Go(func() { up.listen(theirs) })
			return upstream.OpenStream(server, ours, opts), nil
		}
		c.leases["up/"] = &lease{of: asked, lost: make(chan struct{}), moving: make(chan struct{})}
		from.openSession(Identity{}).declare(json.RawMessage(`{}`), transports.Stateless)
		if err := from.Load(t.Context(), "up"); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.replicas {
			if conn := r.set.Get("up").Conn(); conn.Era() != transports.Stateless {
				t.Errorf("replica %s uses the server in era %d", r.name, conn.Era())
			}
		}
	})
}

// A replica that is asked for a server that its config does not have answers with an error.
func TestReplicaAsksForWhatIsNotThere(t *testing.T) {
	t.Parallel()
	entry, _ := placedFake(t, "up", "")
	c := newCluster(t, 1, entry)
	ours, theirs := mcptest.Pipe()
	defer ours.Close()
	var unknown *UnknownServerError
	if err := c.replicas[0].ServeReplica(t.Context(), theirs, "other", "", Placement{}); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
	said, err := io.ReadAll(ours)
	if err != nil || !strings.Contains(string(said), "its config differs") {
		t.Errorf("the other replica was told %s, %v", said, err)
	}
}

// A result that was cut on one replica can be read on any replica, by its user only.
func TestResultOfAnotherReplica(t *testing.T) {
	t.Parallel()
	entry, _ := placedFake(t, "up", `,"max_output_chars":1000`)
	c := newCluster(t, 2, entry)
	text, failed, err := c.replicas[0].call(t.Context(), "alice", "up/big", `{"bytes":5000}`)
	handle := regexp.MustCompile(`[a-z2-7]{12}-a`).FindString(text)
	if err != nil || failed || handle == "" {
		t.Fatalf("got %q, %v", text, err)
	}
	read := func(user, handle string) string {
		s := c.replicas[1].openSession(Identity{User: user})
		answered := make(chan string, 1)
		s.Host = noHost{}
		r := &host.Request{ID: json.RawMessage(`1`), Method: "tools/call", Peer: s.Host, Respond: func(_ *host.Request, result json.RawMessage, _ error) { answered <- string(result) }}
		s.Surface().Tool([]byte(`"discover_tool"`), false).Answer(&surface.Call{
			Session: &toolCall{request: request{s, r}}, Tool: "discover_tool", Arguments: fmt.Appendf(nil, `{"result":%q,"offset":4000,"limit":10}`, handle),
		})
		return <-answered
	}
	if got := read("alice", handle); strings.Contains(got, "isError") || !strings.Contains(got, "text") {
		t.Errorf("its user reads %s", got)
	}
	for _, no := range []struct{ user, handle string }{{"bob", handle}, {"alice", handle + "x"}, {"alice", strings.Repeat("a", 12) + "-a"}} {
		if got := read(no.user, no.handle); !strings.Contains(got, "there is no result") || !strings.Contains(got, "ask once more") {
			t.Errorf("%s reads %s as %s", no.user, got, no.handle)
		}
	}
}

// A call is counted on the replica of its host only. A link is not counted as a call.
func TestCallsInFlightAreCountedOnce(t *testing.T) {
	t.Parallel()
	shared, _ := placedFake(t, "up", "")
	own, _ := placedFake(t, "own", `,"isolation":"principal"`)
	c := newCluster(t, 2, shared+","+own)
	a, b := c.replicas[0], c.replicas[1]
	c.echo(a, "", "up")
	c.echo(b, "", "up") // b has a link to a now
	gate := mcptest.NewGate(t)
	var calls sync.WaitGroup
	for _, tool := range []string{"up/sleep", "own/sleep"} {
		calls.Go(func() {
			text, failed, err := b.call(t.Context(), "ann", tool, fmt.Sprintf(`{"until":%q}`, gate.Path))
			if err != nil || failed {
				t.Errorf("%s: %q, %v", tool, text, err)
			}
		})
	}
	passed := a.fleet.Of(a.set.Get("up"))
	mcptest.Eventually(t, "the call is at the replica that runs the server", func() bool {
		return slices.ContainsFunc(passed.Calls.All(), func(c *call.Flight) bool { return c.Method == "tools/call" })
	})
	inFlight := func(r *replica) map[string]int {
		counts := map[string]int{}
		for _, u := range r.Status().Upstreams() {
			counts[u.Name] = u.InFlight
		}
		return counts
	}
	mcptest.Eventually(t, "both calls are counted where their host is", func() bool {
		return maps.Equal(inFlight(b), map[string]int{"up": 1, "own": 1})
	})
	if got := inFlight(a); got["up"] != 0 || got["own"] != 0 {
		t.Errorf("the other replica counts %v", got)
	}
	gate.Open()
	calls.Wait()
	if got := inFlight(b); got["up"] != 0 || got["own"] != 0 {
		t.Errorf("after they have ended there are %v", got)
	}
}

// A task belongs to its user on every replica, whichever replica made the call.
func TestTaskOfAnotherReplica(t *testing.T) {
	t.Parallel()
	entry, _ := placedFake(t, "up", "")
	c := newCluster(t, 2, entry)
	a, b := c.replicas[0], c.replicas[1]
	u := a.set.Get("up")
	alice, bob := a.openSession(Identity{User: "alice"}), b.openSession(Identity{User: "bob"})
	a.fleet.Of(u).AddTask(alice.Session, json.RawMessage(`"task/1 \u00e9"`), nil)
	mcptest.Eventually(t, "the other replica knows whose it is", func() bool {
		_ = b.fleet.Of(b.set.Get("up")).LearnTask(t.Context(), "task/1 é")
		return b.fleet.HasTask(b.openSession(Identity{User: "alice"}).Session, b.set.Get("up"), "task/1 é")
	})
	if bob.agg.fleet.HasTask(bob.Session, b.set.Get("up"), "task/1 é") {
		t.Error("it is another user's as well")
	}
	if err := b.fleet.Of(b.set.Get("up")).LearnTask(t.Context(), "unknown"); err != nil {
		t.Error(err)
	}
	if bob.agg.fleet.HasTask(bob.Session, b.set.Get("up"), "unknown") {
		t.Error("a task that nobody knows is somebody's")
	}
}

// While the state of the cluster cannot be reached, a request about a task is not answered
// with an unknown task: the host is told to try again.
func TestTaskWhileTheStateIsGone(t *testing.T) {
	t.Parallel()
	entry, _ := placedFake(t, "up", "")
	c := newCluster(t, 2, entry)
	a, b := c.replicas[0], c.replicas[1]
	<-a.fleet.Of(a.set.Get("up")).AddTask(a.openSession(Identity{User: "alice"}).Session, json.RawMessage(`"1"`), nil)
	get := func() error {
		s := b.openSession(Identity{User: "alice"})
		answered := make(chan error, 1)
		s.Host = noHost{}
		request{s, &host.Request{
			ID: json.RawMessage(`1`), Method: "tasks/get", Era: transports.Handshake, Params: json.RawMessage(`{"taskId":"up/1"}`), Peer: s.Host,
			Respond: func(_ *host.Request, _ json.RawMessage, err error) { answered <- err },
		}}.aboutTask()
		return <-answered
	}
	c.state.Cut()
	if err := transports.WireError(get()); err.Code != transports.CodeNotPlaced || !strings.Contains(err.Message, "call again") {
		t.Errorf("without the state: %v", err)
	}
	c.state.Heal()
	if err := transports.WireError(get()); strings.Contains(err.Message, "Unknown task") { // its server has none
		t.Errorf("with the state: %v", err)
	}
}
