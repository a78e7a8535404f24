package aggregator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	browser "github.com/dynmcp/dynmcp/modules/browser/tools"
	"github.com/dynmcp/dynmcp/modules/pins/lock"
	"github.com/dynmcp/dynmcp/modules/policy/rules"
	proxy "github.com/dynmcp/dynmcp/modules/proxy/tools"
	scripts "github.com/dynmcp/dynmcp/modules/scripts/tool"
	tree "github.com/dynmcp/dynmcp/modules/tree/tools"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A stage is an aggregator with scripted hosts and upstreams around it, all in
// this process.
type stage struct {
	t         *testing.T
	agg       *Aggregator
	hosts     []*actor
	upstreams []*actor
	states    []string    // every requestState of ours that was received
	results   []string    // and every handle of a result
	other     *Aggregator // runs the upstreams for agg; nil if agg runs them
	running   sync.WaitGroup
	texts     bool            // our texts are not abbreviated
	locked    []chan struct{} // tells an aggregator that the lock has changed
	shaky     bool            // the store of tasks fails at first
}

// An actor is one host or one upstream.
type actor struct {
	name         string
	upstream     bool
	version      string
	capabilities string
	introduction string // of a host of the stateless era
	scripted     bool   // it sends only what the transcript says
	lazy         bool
	answers      map[string]string // results of an upstream's first requests, by method

	held []byte // to be sent with the next step

	mu       sync.Mutex
	stream   io.ReadWriteCloser
	lines    []string
	starting map[string]bool // the methods that it still answers automatically
}

// setStage reads the setup and connects the actors. A line of it is one of
//
//	host [NAME] VERSION CAPABILITIES
//	upstream [NAME] [lazy] [scripted] VERSION CAPABILITIES
//	expose SURFACES
//	single
//	texts
//	shaky
//
// Members of the config, or of the entry of an upstream, are in sections "config" and
// "upstream [NAME] config". A section "approved" has the tools in the lock, each after
// the name of its server.
//
// A VERSION of an upstream may be several, separated by commas. A host with the version "-"
// and an upstream that is scripted send nothing automatically.
//
// If apart is true, the upstreams run on another replica than that of the hosts. A host "here"
// is one of many, and a host "there" is connected to the other replica.
func setStage(t *testing.T, archive *txtar.Archive, apart bool) *stage {
	st := &stage{t: t}
	single, expose := false, []string(nil)
	for text := range strings.Lines(string(section(archive, "setup").Data)) {
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case words[0] == "single":
			single = true
		case words[0] == "texts":
			st.texts = true
		case words[0] == "shaky":
			st.shaky = true
		case words[0] == "expose":
			expose = words[1:]
		case words[0] == "host":
			st.hosts = append(st.hosts, newActor(words))
		case words[0] == "upstream":
			a := newActor(words)
			for _, f := range archive.Files {
				if method, ok := strings.CutPrefix(f.Name, a.name+" "); ok {
					a.answers[method] = strings.TrimSpace(string(f.Data))
				}
			}
			st.upstreams = append(st.upstreams, a)
		default:
			t.Fatalf("setup: %q", text)
		}
	}
	cfg := st.config(single, expose, strings.TrimSpace(string(section(archive, "config").Data)))
	st.approve(cfg, string(section(archive, "approved").Data))
	st.start(apart, cfg)
	return st
}

// onStage runs a test in a synctest bubble on the stage of a setup.
func onStage(t *testing.T, setup string, test func(t *testing.T, st *stage)) {
	synctest.Test(t, func(t *testing.T) {
		st := setStage(t, txtar.Parse([]byte(setup)), false)
		defer st.close()
		test(t, st)
	})
}

// quiesce returns when nothing more happens in the bubble.
func quiesce() {
	time.Sleep(settling)
	synctest.Wait()
}

func newActor(words []string) *actor {
	a := &actor{name: words[0], upstream: words[0] == "upstream", answers: map[string]string{}, version: "-"}
	for _, w := range words[1:] {
		switch {
		case w == "lazy":
			a.lazy = true
		case w == "scripted":
			a.scripted = true
		case w[0] == '{':
			a.capabilities = w
		case w == "-" || strings.HasPrefix(w, "20"):
			a.version = w
		default:
			a.name += " " + w
		}
	}
	if !a.upstream && a.version >= transports.StatelessVersion {
		a.introduction = fmt.Sprintf(`%q:%q,%q:%s,%q:{"name":"host","version":"1"}`,
			transports.MetaVersion, a.version, transports.MetaCapabilities, a.capabilities, transports.MetaClientInfo)
	}
	return a
}

// server returns the name of an upstream's entry in the config.
func (a *actor) server() string {
	if _, name, ok := strings.Cut(a.name, " "); ok {
		return name
	}
	return "up"
}

// added are the surfaces of modules.
var added = []surface.Kind{browser.Surface, proxy.Surface, scripts.Surface, tree.Surface}

// addedNames has the names of added, for a config.
func addedNames() []schema.Section {
	var names schema.Section
	for _, kind := range added {
		names.Surfaces = append(names.Surfaces, kind.Name)
	}
	return []schema.Section{names, rules.Section, lock.Section}
}

// configOf loads a config from its text.
func configOf(t testing.TB, document string) *schema.Config {
	t.Helper()
	cfg, err := schema.ReadFiles(t.Context(), []string{mcptest.Config(t, document)}, schema.LoadOptions{Sections: addedNames()}).Load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (st *stage) config(single bool, expose []string, members string) *schema.Config {
	cfg := schema.Single("up", nil)
	if !single {
		entries := make([]string, len(st.upstreams))
		for i, a := range st.upstreams {
			entry := `"command":"none"`
			if a.lazy {
				entry += `,"description":"It is scripted."`
			}
			if own := a.answers["config"]; own != "" {
				entry += "," + own
			}
			entries[i] = fmt.Sprintf("%q:{%s}", a.server(), entry)
		}
		if members != "" {
			members += ","
		}
		cfg = configOf(st.t, `{`+members+`"mcp":{`+strings.Join(entries, ",")+`}}`)
	}
	if expose != nil {
		cfg.Expose = expose
	}
	return cfg
}

// approve writes the lock file of a config.
func (st *stage) approve(cfg *schema.Config, tools string) {
	for line := range strings.Lines(tools) {
		server, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _ := wire.Text(wire.Get([]byte(text), "name"))
		st.pin(cfg, server, definition.New(name, []byte(text), ""))
	}
}

// pin adds tools of a server to the lock of a config.
func (st *stage) pin(cfg *schema.Config, server string, tools ...definition.Tool) {
	err := lock.Files{Lock: lock.FileOf(cfg.Path)}.Update(func(l lock.Lock) {
		if l[server] == nil {
			l.Set(server, "", nil)
		}
		for _, t := range tools {
			l[server].Tools[t.Name] = t.Digest
		}
	})
	if err != nil {
		st.t.Fatal(err)
	}
}

// approveNow approves all tools that a server lists, or one of them.
func (st *stage) approveNow(what string) {
	server, tool, _ := strings.Cut(what, "/")
	listed, _ := st.agg.catalog.View().Definitions(server)
	st.pin(st.agg.config(), server, slices.DeleteFunc(slices.Clone(listed), func(t definition.Tool) bool { return tool != "" && t.Name != tool })...)
	for _, changed := range st.locked {
		changed <- struct{}{}
	}
}

func (st *stage) start(apart bool, cfg *schema.Config) {
	opts := Options{Version: "1"}
	if st.shaky {
		tasks, err := memkv.New().Connect().Bucket(st.t.Context(), "tasks")
		if err != nil {
			st.t.Fatal(err)
		}
		opts.Tasks, opts.Keys = failing{tasks, &atomic.Int32{}}, seal.Random()
	}
	if apart {
		st.other = st.aggregator(cfg, opts)
		opts.Cluster = apartFrom{st}
	}
	agg := st.aggregator(cfg, opts)
	st.agg = agg
	for _, h := range st.hosts {
		ours, theirs := net.Pipe()
		h.enter(theirs)
		st.running.Go(func() { h.listen(theirs) })
		st.running.Go(func() {
			switch h.name {
			case "host here":
				_ = agg.ServeConn(st.t.Context(), ours)
			case "host there":
				_ = st.other.ServeConn(st.t.Context(), ours)
			default:
				_ = agg.Serve(st.t.Context(), ours, ours)
			}
			ours.Close()
		})
		h.introduce()
	}
	quiesce()
	for _, h := range st.hosts {
		if h.version != "-" {
			h.take() // the answers to its introduction
		}
	}
}

func (st *stage) aggregator(cfg *schema.Config, opts Options) *Aggregator {
	changed := make(chan struct{})
	st.locked, opts.ApprovalsChanged = append(st.locked, changed), changed
	opts.Surfaces, opts.Approvals = added, approvals{}
	agg, err := New(cfg, opts)
	if err != nil {
		st.t.Fatal(err)
	}
	agg.fleet.Open = st.open
	return agg
}

// approvals are those of the locks of a stage.
type approvals struct{}

func (approvals) File(config string) string { return lock.FileOf(config) }
func (approvals) Guards(cfg *schema.Config, log *slog.Logger) approval.Guards {
	return lock.Guards(cfg, "", log)
}

// apartFrom runs all upstreams of a stage on its other replica. It implements Cluster.
type apartFrom struct{ *stage }

func (a apartFrom) Place(ctx context.Context, server schema.Server, principal string) (*Placement, error) {
	return a.place(ctx, server, principal)
}

func (apartFrom) ResultOf(context.Context, string, string, string) (json.RawMessage, int, bool) {
	return nil, 0, false
}

// place connects to the replica that runs the upstreams. There the first host counts as the
// first one too.
func (st *stage) place(_ context.Context, server schema.Server, principal string) (*Placement, error) {
	ours, theirs := net.Pipe()
	st.running.Go(func() {
		select {
		case <-st.agg.fleet.Declared.Known:
		case <-st.agg.ctx.Done():
		}
		first, _ := st.agg.fleet.Declared.Get()
		st.other.fleet.Declared.SetFirst(first, false)
		_ = st.other.ServeReplica(context.Background(), theirs, server.Name, principal, Placement{})
	})
	return &Placement{Stream: ours}, nil
}

// introduce makes the handshake, or in the stateless era lists the tools, which
// starts the upstreams.
func (a *actor) introduce() {
	switch {
	case a.version == "-":
		return
	case a.introduction != "":
		a.send(a.message(`{"id":"first","method":"tools/list","params":{"_meta":{$HOST}}}`))
		time.Sleep(settling) // the next host must come second
	default:
		a.send(a.message(fmt.Sprintf(`{"id":"first","method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"host","version":"1"}}}`, a.version, a.capabilities)))
		time.Sleep(settling)
		a.send(a.message(`{"method":"notifications/initialized"}`))
	}
}

// open connects the aggregator to an upstream.
func (st *stage) open(server schema.Server, opts upstream.ConnOptions) (*upstream.Conn, error) {
	i := slices.IndexFunc(st.upstreams, func(a *actor) bool { return a.server() == server.Name })
	a := st.upstreams[i]
	ours, theirs := net.Pipe()
	a.enter(theirs)
	st.running.Go(func() { a.listen(theirs) })
	return upstream.OpenStream(server, ours, opts), nil
}

func (st *stage) close() {
	for _, a := range append(st.hosts, st.upstreams...) {
		if a.stream != nil {
			a.leave()
		}
	}
	st.agg.Close()
	if st.other != nil {
		st.other.Close()
	}
	st.running.Wait()
}

func (st *stage) actor(name string) *actor {
	for _, a := range append(st.hosts[:len(st.hosts):len(st.hosts)], st.upstreams...) {
		if a.name == name {
			return a
		}
	}
	st.t.Fatalf("there is no %s", name)
	return nil
}

// enter gives the actor its stream.
func (a *actor) enter(stream io.ReadWriteCloser) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stream = stream
	a.starting = map[string]bool{}
	if a.upstream && !a.scripted {
		for _, method := range []string{"initialize", "server/discover", "subscriptions/listen", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			a.starting[method] = true
		}
	}
}

// listen keeps what is sent to the actor until its stream ends.
func (a *actor) listen(stream io.Reader) {
	lines := bufio.NewReader(stream)
	for {
		text, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		text = strings.TrimSuffix(text, "\n")
		if answer, ok := a.byItself(text); ok {
			if answer != "" {
				a.send(answer)
			}
			continue
		}
		a.mu.Lock()
		a.lines = append(a.lines, text)
		a.mu.Unlock()
	}
}

func (a *actor) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.lines
	a.lines = nil
	return taken
}

// messages is take for parsed messages.
func (a *actor) messages() (all []wire.Message) {
	for _, text := range a.take() {
		m, _ := wire.Parse([]byte(text))
		all = append(all, m)
	}
	return all
}

func (a *actor) flush() {
	text := bytes.TrimSuffix(a.held, []byte("\n"))
	a.held = nil
	a.send(string(text))
}

// send writes lines in one write. It ignores errors: the test sees what the other end does.
func (a *actor) send(text string) {
	a.mu.Lock()
	stream := a.stream
	a.mu.Unlock()
	_, _ = io.WriteString(stream, text+"\n")
}

func (a *actor) leave() { a.stream.Close() }

// byItself returns the automatic answer of an upstream that is not scripted, "" for none.
// ok is true if the message needs nothing else.
func (a *actor) byItself(text string) (answer string, ok bool) {
	m, err := wire.Parse([]byte(text))
	if err != nil {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	stateless := wire.Get(wire.Get(m.Params, "_meta"), transports.MetaVersion) != nil
	switch {
	case m.Method == "notifications/initialized":
		return "", !a.scripted
	case m.Method == "notifications/cancelled" && string(wire.Get(m.Params, "requestId")) == `"first"`:
		return "", true
	case !a.starting[m.Method]:
		return "", false
	}
	delete(a.starting, m.Method)
	if m.Method == "subscriptions/listen" { // a stream: its answer comes at its end
		return greased(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{%q:%s}}}`,
			wire.Get(m.Params, "notifications"), transports.MetaSubscriptionID, m.ID)), true
	}
	if a.answers[m.Method] != "" {
		return greased(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, a.answers[m.Method])), true
	}
	return greased(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, a.standard(m.Method, stateless))), true
}

// standard returns the result or error of an automatic answer.
func (a *actor) standard(method string, stateless bool) string {
	version, older := "", ""
	for v := range strings.SplitSeq(a.version, ",") {
		if v >= transports.StatelessVersion {
			version = v
		} else {
			older = v
		}
	}
	switch {
	case method == "initialize" && older != "":
		return fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":%q,"version":"1"}}`, older, a.capabilities, a.server())
	case method == "initialize", stateless && version == "":
		return `"error":{"code":-32601,"message":"not in this era"}`
	case method == "server/discover":
		versions, _ := json.Marshal(strings.Split(a.version, ","))
		return fmt.Sprintf(`"result":{"resultType":"complete","supportedVersions":%s,"capabilities":%s}`, versions, a.capabilities)
	}
	return fmt.Sprintf(`"result":{%q:[]}`, map[string]string{
		"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	}[method])
}

// own has the members of _meta by which dynmcp introduces itself to upstreams of the stateless
// era.
var own = fmt.Sprintf(`%q:%q,%q:{},%q:{"name":"dynmcp","version":"1"}`,
	transports.MetaVersion, transports.StatelessVersion, transports.MetaCapabilities, transports.MetaClientInfo)

const (
	grease  = `"x-grease":{"n":[9007199254740993,123456789012345678901234567890,1.0,-0,1E400,0.10],"s":"\u00e9\/é <&>"}`
	content = `{"type":"x-hologram","frames":[1e2,{}],"data":null}`
)

// greased adds unknown members to a message: they have to pass like known ones.
func greased(text string) string {
	m, err := wire.Parse([]byte(text))
	if err != nil {
		return text
	}
	whole := string(m.Raw)
	for _, part := range []json.RawMessage{m.Params, m.Result, m.Error} {
		if !wire.IsObject(part) {
			continue
		}
		comma := ","
		if string(part) == "{}" {
			comma = ""
		}
		more := strings.TrimSuffix(string(part), "}") + comma + grease + "}"
		more = strings.Replace(more, `"content":[`, `"content":[`+content+",", 1)
		more = strings.Replace(more, content+",]", content+"]", 1)
		whole = strings.Replace(whole, string(part), more, 1)
	}
	return strings.TrimSuffix(whole, "}") + `,"x-envelope":[1.0]}`
}

// A failing bucket refuses the first three records.
type failing struct {
	records.Bucket
	puts *atomic.Int32
}

func (b failing) WithTTL(ttl time.Duration) records.Bucket {
	return failing{b.Bucket.WithTTL(ttl), b.puts}
}

func (b failing) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if b.puts.Add(1) <= 3 {
		return 0, records.ErrUnavailable
	}
	return b.Bucket.Put(ctx, key, value)
}
