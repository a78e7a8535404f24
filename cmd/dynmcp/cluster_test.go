package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
)

// A testCluster is what replicas share.
type testCluster struct {
	t        *testing.T
	nats     *natstest.Server
	env      []string // of all that belong to it
	replicas []*testReplica

	mu       sync.Mutex
	failures []string
}

// inACluster runs a test of leases. On a slow machine replicas send heartbeats late and lose
// leases, which they log. Such a run proves nothing and is repeated.
func inACluster(t *testing.T, test func(*testCluster)) {
	t.Helper()
	var c *testCluster
	for tries := 1; ; tries++ {
		ran := false // not where -run names another try
		t.Run(fmt.Sprint("try ", tries), func(t *testing.T) {
			ran = true
			c = newCluster(t)
			test(c)
		})
		switch {
		case t.Failed() || c == nil || len(c.failures) == 0:
			return
		case !ran || tries == 5 || !c.late():
			t.Errorf("%s", strings.Join(c.failures, "\n"))
			return
		}
	}
}

// late reports whether a replica did not reach NATS in time. It is called after all have
// ended.
func (c *testCluster) late() bool {
	all := strings.Join(c.failures, "\n")
	for _, r := range c.replicas {
		all += r.Stderr()
	}
	for _, said := range []string{"leases of this replica are lost", "its leases are lost", "the cluster's state cannot be reached", "the connection to NATS is lost"} {
		if strings.Contains(all, said) {
			return true
		}
	}
	return false
}

// errorf notes a failure, which counts unless a replica was late.
func (c *testCluster) errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

// process returns the process id that a call of the tool pid was answered with.
func (c *testCluster) process(m mcptest.Message) int {
	c.t.Helper()
	n, err := strconv.Atoi(m.Text())
	if err != nil {
		c.errorf("no process: %s", m.Raw)
		c.t.SkipNow()
	}
	return n
}

const clusterKey = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n"

func newCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{t: t, nats: natstest.Start(t, "")}
	c.env = []string{"DYNMCP_CLUSTER=" + c.nats.URL, "DYNMCP_CLUSTER_KEY=" + writeFile(t, t.TempDir(), "key", clusterKey)}
	return c
}

// verb runs a verb of dynmcp cluster and returns what it printed.
func (c *testCluster) verb(args ...string) (string, error) {
	c.t.Helper()
	cmd := exec.Command(mcptest.Dynmcp(c.t), append([]string{"cluster"}, args...)...)
	cmd.Env = append(os.Environ(), c.env...)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		c.t.Logf("dynmcp cluster %q: %v %s", args, err, failed.Stderr)
	}
	return string(out), err
}

// push pushes a config of these entries to the cluster.
func (c *testCluster) push(entries ...entry) { c.pushDocument(document(entries)) }

func (c *testCluster) pushDocument(text string) {
	c.t.Helper()
	file := writeFile(c.t, c.t.TempDir(), "mcp.json", text)
	mcptest.Eventually(c.t, "the config is pushed", func() bool { _, err := c.verb("push", file); return err == nil })
}

// state returns what dynmcp cluster prints once every replica answers.
func (c *testCluster) state(args ...string) (text string) {
	c.t.Helper()
	mcptest.Eventually(c.t, "all replicas are heard of", func() (ok bool) {
		out, err := c.verb(args...)
		text = out
		return err == nil
	})
	return text
}

// shows checks that dynmcp cluster prints these texts.
func (c *testCluster) shows(texts ...string) {
	c.t.Helper()
	shown := c.state()
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			c.errorf("%q is not in %s", text, shown)
		}
	}
}

// A testReplica is one of the replicas.
type testReplica struct {
	*mcptest.Process
	t    *testing.T
	name string
	url  string
}

// replica starts a replica with the cluster's config.
func (c *testCluster) replica(name string) *testReplica {
	c.t.Helper()
	r := &testReplica{t: c.t, name: name}
	r.Process = mcptest.Run(c.t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(c.t), "serve", "--http", "127.0.0.1:0", "--replica", name}, Env: c.env, Lingers: true})
	c.replicas = append(c.replicas, r)
	return r
}

// serving waits until hosts can connect.
func (r *testReplica) serving() *testReplica {
	r.t.Helper()
	line := r.WaitStderr("/mcp\n")
	r.url = regexp.MustCompile(`(http://[0-9.:]+)/mcp\n`).FindStringSubmatch(line)[1]
	return r
}

// host returns a host that has made the handshake with a replica.
func (r *testReplica) host() *mcptest.Client {
	r.t.Helper()
	h := mcptest.NewClient(r.t, r.url+"/mcp")
	h.Initialize(handshake, nil)
	return h
}

// statelessHost returns a host of the stateless era.
func (r *testReplica) statelessHost() *mcptest.Client {
	h := mcptest.NewClient(r.t, r.url+"/mcp")
	h.Header.Set("Mcp-Protocol-Version", stateless)
	return h
}

// useStateless calls an upstream's tool as a host of the stateless era.
func useStateless(h *mcptest.Client, tool string, input string) mcptest.Message {
	return postStateless(h, "tools/call", "use_tool", fmt.Sprintf(`{"name":"use_tool","arguments":{"tool_name":%q,"tool_input":%s}}`, tool, input)).Last()
}

// holder returns the replica that has the lease of a server, and another one.
func (c *testCluster) holder(server string, replicas ...*testReplica) (holder, other *testReplica) {
	c.t.Helper()
	var state struct {
		Leases []struct{ Server, Replica string }
	}
	if text := c.state("--json"); json.Unmarshal([]byte(text), &state) != nil {
		c.t.Fatalf("got %s", text)
	}
	for _, l := range state.Leases {
		for i, r := range replicas {
			if l.Server == server && l.Replica == r.name {
				return r, replicas[(i+1)%len(replicas)]
			}
		}
	}
	c.errorf("no replica has the lease of %s: %+v", server, state)
	c.t.SkipNow()
	return nil, nil
}

// All replicas are one service: a server runs once for all of them, each continues sessions
// of the others, and a pushed config reaches all.
func TestReplicasAreOneService(t *testing.T) {
	t.Parallel()
	inACluster(t, replicasAreOneService)
}

func replicasAreOneService(c *testCluster) {
	alpha := fake(c.t, "alpha").with("tool_overrides", map[string]any{"big": map[string]int{"max_output_chars": 400}})
	a := c.replica("a")
	a.WaitStderr("there is no config in the cluster yet")
	modern := fake(c.t, "modern", "-era", "new")
	c.push(alpha, modern)
	a.serving()
	b := c.replica("b").serving()

	atA, atB := a.host(), b.host()
	first := c.process(atA.Call("tools/call", useParams("alpha/pid", nil)))
	for i, m := range []mcptest.Message{atB.Call("tools/call", useParams("alpha/pid", nil)), useStateless(a.statelessHost(), "alpha/pid", `{}`), useStateless(b.statelessHost(), "alpha/pid", `{}`)} {
		if got := c.process(m); got != first {
			c.errorf("host %d is answered by another process: %d, not %d", i, got, first)
		}
	}
	if n := alpha.Count("start"); n != 1 {
		c.errorf("the server was started %d times", n)
	}

	// The other replica continues a session, and refuses a forged one.
	moved := mcptest.NewClient(c.t, b.url+"/mcp")
	moved.Session = atA.Session
	moved.Header.Set("Mcp-Protocol-Version", handshake)
	if got := moved.Call("tools/call", useParams("alpha/echo", `{"n":1}`)).Text(); got != `{"n":1}` {
		c.errorf("got %s", got)
	}
	last := moved.Session[len(moved.Session)/2]
	moved.Session = strings.Replace(moved.Session, string(last), string(last^1), 1)
	if r := moved.Post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); r.Status != 404 {
		c.errorf("a session that was tampered with: %d %s", r.Status, r.Body)
	}

	// A handle or a state of one replica is valid at the other.
	m := useStateless(a.statelessHost(), "alpha/big", `{"bytes":4000}`)
	handle := regexp.MustCompile(`\\"result\\": \\"([A-Za-z0-9-]+)\\"`).FindStringSubmatch(m.Raw)
	if handle == nil {
		c.errorf("no handle in %s", m.Raw)
		return
	}
	if m := postStateless(b.statelessHost(), "tools/call", "discover_tool", fmt.Sprintf(`{"name":"discover_tool","arguments":{"result":%q}}`, handle[1])).Last(); m.IsError() || m.Error != nil {
		c.errorf("the rest of a result: %s", m.Raw)
	}
	question := ask("elicitation/create", `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)
	parking := func(more string) string {
		return `{"name":"use_tool","arguments":{"tool_name":"alpha/ask","tool_input":` + question + `}` + more + `}`
	}
	state := postStateless(a.statelessHost(), "tools/call", "use_tool", parking("")).Last().Member("requestState")
	next := postStateless(b.statelessHost(), "tools/call", "use_tool", parking(`,"requestState":`+string(state)+`,"inputResponses":{"question-1":{"action":"accept","content":{"who":"ann"}}}`)).Last()
	if state == nil || !strings.Contains(next.Text(), "ann") {
		c.errorf("a call that waited for its host: %s, then %s", state, next.Raw)
	}
	// The state of a server of the stateless era is valid once, at any replica.
	continuing := func(r *testReplica, more string) mcptest.Message {
		return postStateless(r.statelessHost(), "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"modern/ask","tool_input":`+question+`}`+more+`}`).Last()
	}
	more := fmt.Sprintf(`,"requestState":%s,"inputResponses":{"ask é":{"action":"accept","content":{"who":"ann"}}}`, continuing(a, "").Member("requestState"))
	if next := continuing(b, more); !strings.Contains(next.Text(), "ann") {
		c.errorf("a call that a server answered with a question: %s", next.Raw)
	}
	for _, r := range []*testReplica{a, b} {
		if again := continuing(r, more); !strings.Contains(again.Raw, "-32602") {
			c.errorf("its state again: %s", again.Raw)
		}
	}

	beta, lazy := fake(c.t, "beta"), fake(c.t, "lazy").with("description", "A server that is seldom used.")
	c.push(alpha, beta, lazy)
	for _, h := range []*mcptest.Client{atA, atB} {
		mcptest.Eventually(c.t, "the config is taken", func() bool {
			return h.Call("tools/call", useParams("beta/echo", `{"n":2}`)).Text() == `{"n":2}`
		})
	}
	if got := c.process(atB.Call("tools/call", useParams("alpha/pid", nil))); got != first {
		c.errorf("a server whose entry is the same was started again")
	}
	// A listing by one replica is known at the other, which does not start the server.
	if got := atA.Call("tools/call", useParams("lazy/echo", `{"n":3}`)).Text(); got != `{"n":3}` {
		c.errorf("got %s", got)
	}
	mcptest.Eventually(c.t, "a listing is known everywhere", func() bool {
		return strings.Contains(atB.Call("tools/call", `{"name":"discover_tool","arguments":{"query":"pid"}}`).Text(), "lazy/pid")
	})
	c.shows("REPLICA", "\na  ", "\nb  ", "\nalpha ", "\nbeta ")
	for _, r := range []*testReplica{a, b} {
		text, err := http.Get(r.url + "/health")
		if err != nil {
			c.t.Fatal(err)
		}
		body, _ := io.ReadAll(text.Body)
		text.Body.Close()
		if want := fmt.Sprintf(`{"status":"ok","replica":%q}`, r.name); strings.TrimSpace(string(body)) != want {
			c.errorf("got %s, want %s", body, want)
		}
	}
}

// A run that cannot become a replica says why and ends.
func TestReplicaThatCannotStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	waiting := c.replica("a")
	waiting.WaitStderr("there is no config in the cluster yet")
	waiting.Signal(syscall.SIGTERM)
	if code := waiting.Wait(); code != 0 {
		t.Errorf("a replica that waits for a config ends with status %d", code)
	}

	alpha := fake(t, "alpha")
	c.push(alpha)
	config := mcptest.Config(t, document([]entry{alpha}))
	other := writeFile(t, t.TempDir(), "other", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--cluster-key", "missing"}, "the cluster key missing is not there"},
		{[]string{"--http", "127.0.0.1:0", "--cluster-key", other}, "the config in the cluster was not sealed with this cluster key"},
		{[]string{"-c", config}, "a replica of a cluster is reached over HTTP"},
		{[]string{"-c", config, "--http", "127.0.0.1:0", "--peer-addr", "nowhere"}, "--peer-addr: "},
		{[]string{"-c", config, "--http", "127.0.0.1:0", "--peer-advertise", "nowhere"}, "--peer-advertise: "},
		{[]string{"-c", config, "--http", "127.0.0.1:0", "--peer-cert", "a"}, "--peer-cert, --peer-key and --peer-ca go together"},
		{[]string{"-c", config, "--http", "127.0.0.1:0", "--cluster-creds", "missing"}, "read the credentials for NATS"},
		{[]string{"-c", config, "--http", "127.0.0.1:0", "--cluster-ca", "missing"}, "read the authorities of NATS"},
	} {
		contains(t, fails(t, mcptest.HostOptions{Args: append([]string{"serve"}, test.args...), Env: c.env}), test.want)
	}
	contains(t, fails(t, mcptest.HostOptions{Args: []string{"serve", "--http", "127.0.0.1:0", "-c", config, "--peer-addr", "127.0.0.1:0"}}),
		"--replica and --peer-… are for a replica of a cluster, and none is named")
	nothingStarted(t, alpha)
}
