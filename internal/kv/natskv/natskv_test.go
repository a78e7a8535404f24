package natskv

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/kv/kvtest"
)

// patience is how long anything may take on a machine that is busy.
const patience = 120 * time.Second

// start starts a node of NATS in this process.
func start(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.JetStream = "127.0.0.1", server.RANDOM_PORT, true, true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the node does not start")
	}
	return s
}

// A proxy passes connections on to an address, and can be cut.
type proxy struct {
	listener net.Listener
	known    chan struct{} // closed when there is an address
	ended    chan struct{}
	wg       sync.WaitGroup

	mu      sync.Mutex
	address string
	off     bool
	conns   map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, known: make(chan struct{}), ended: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	return p
}

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[from] = true
		if p.off {
			from.Close()
		}
		p.mu.Unlock()
		p.wg.Go(func() {
			defer from.Close()
			select {
			case <-p.known:
			case <-p.ended:
				return
			}
			p.mu.Lock()
			address := p.address
			p.mu.Unlock()
			to, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer to.Close()
			p.wg.Go(func() {
				_, _ = io.Copy(to, from)
				to.Close()
			})
			_, _ = io.Copy(from, to)
		})
	}
}

// leads says where the proxy leads.
func (p *proxy) leads(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address == "" {
		close(p.known)
	}
	p.address = address
}

func (p *proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = false
}

func (p *proxy) end() {
	p.listener.Close()
	close(p.ended)
	p.Cut()
	p.wg.Wait()
}

// A proxied store reaches its node by way of a proxy.
type proxied struct {
	*Store
	*proxy
}

func TestNATS(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("suite", func(t *testing.T) {
		node := start(t, server.Options{StoreDir: t.TempDir()})
		kvtest.Run(t, func(t *testing.T) kvtest.Connection {
			p := newProxy(t)
			t.Cleanup(p.end)
			p.leads(node.Addr().String())
			s, err := Open(Options{URLs: []string{"nats://" + p.listener.Addr().String()}, Name: t.Name(), answer: patience / 4})
			if err != nil {
				t.Fatal(err)
			}
			return proxied{s, p}
		})
	})
}

// open opens a bucket, which takes an election or two where there are several nodes.
func open(t *testing.T, s *Store) writer {
	t.Helper()
	var b kv.Bucket
	eventually(t, "the bucket", func() (err error) { b, err = s.Bucket(t.Context(), "state"); return err })
	return b.(writer)
}

// eventually tries until there is no error.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// A cluster is nodes of NATS that know each other by addresses which stay.
type cluster struct {
	routes [nodes]*proxy
	dirs   [nodes]string
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{}
	for i := range c.routes {
		c.routes[i], c.dirs[i] = newProxy(t), t.TempDir()
		t.Cleanup(c.routes[i].end)
	}
	return c
}

// start starts a node.
func (c *cluster) start(t *testing.T, i int) *server.Server {
	t.Helper()
	o := server.Options{ServerName: fmt.Sprint("n", i), StoreDir: c.dirs[i], Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT}}
	var routes []string
	for j, p := range c.routes {
		if j != i { // one to itself would count as another node
			routes = append(routes, "nats://"+p.listener.Addr().String())
		}
	}
	o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
	node := start(t, o)
	c.routes[i].leads(node.ClusterAddr().String())
	return node
}

// A bucket that was made on one node is put on three when there are as many, and then
// outlives the loss of the one that leads.
func TestAcknowledgedOutlivesTheLeader(t *testing.T) {
	c := newCluster(t)
	var all []*server.Server
	var urls []string
	for i := range nodes {
		all = append(all, c.start(t, i))
		urls = append(urls, all[i].ClientURL())
	}
	s, err := Open(Options{URLs: urls, retry: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	few := &bucket{name: "dynmcp_state"}
	eventually(t, "a bucket on one node", func() error {
		_, err := s.js.CreateStream(t.Context(), few.config(1))
		return err
	})
	b := open(t, s)
	eventually(t, "the bucket on three nodes", func() error {
		info, err := b.stream.Info(t.Context())
		if err == nil && (len(info.Cluster.Replicas) != nodes-1 || slices.ContainsFunc(info.Cluster.Replicas, func(r *jetstream.PeerInfo) bool { return !r.Current })) {
			err = fmt.Errorf("it is on %d nodes, or they do not have all of it: %+v", info.Config.Replicas, info.Cluster)
		}
		return err
	})

	watched := make(chan kv.Entry, 1000)
	ended := make(chan error, 1)
	go func() { ended <- b.Watch(t.Context(), "", func(e kv.Entry) { watched <- e }, nil) }()

	acknowledged := map[string]string{}
	write := func(from, to int) {
		for i := from; i < to; i++ {
			key, value := fmt.Sprint("k", i), strings.Repeat(fmt.Sprint(i, " "), 200)
			eventually(t, "create "+key, func() error {
				_, err := b.Create(t.Context(), key, []byte(value))
				if errors.Is(err, kv.ErrConflict) {
					return nil // an answer was lost
				}
				return err
			})
			acknowledged[key] = value
		}
	}
	write(0, 50)
	large := strings.Repeat("large ", 500_000)
	eventually(t, "put", func() error { _, err := b.Put(t.Context(), "large", []byte(large)); return err })
	acknowledged["large"] = large

	// A list has what was acknowledged before, from whichever node it comes.
	for i := range 20 {
		value := fmt.Sprint(i)
		eventually(t, "put", func() error { _, err := b.Put(t.Context(), "last", []byte(value)); return err })
		list, err := kv.List(t.Context(), b, "")
		if got := string(list["last"].Value); err != nil || got != value {
			t.Fatalf("after %s was acknowledged a list has %q (%v)", value, got, err)
		}
		acknowledged["last"] = value
	}

	info, err := b.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(node *server.Server) bool { return node.Name() == info.Cluster.Leader })
	if i < 0 {
		t.Fatalf("no node is the leader %q", info.Cluster.Leader)
	}
	all[i].Shutdown()
	write(50, 100)
	for key, value := range acknowledged {
		eventually(t, "get "+key, func() error {
			e, err := b.Get(t.Context(), key)
			if errors.Is(err, kv.ErrNotFound) {
				t.Fatalf("%s was acknowledged, and is gone", key)
			}
			if err == nil && string(e.Value) != value {
				t.Fatalf("%s has another value than was acknowledged", key)
			}
			return err
		})
	}
	// The watch has gone on, in order, and misses nothing.
	deadline := time.After(patience)
	missing := maps.Clone(acknowledged)
	for last := uint64(0); len(missing) > 0; {
		select {
		case e := <-watched:
			is := string(e.Value) == acknowledged[e.Key]
			if e.Revision <= last || !is && e.Key != "last" {
				t.Fatalf("told of %s at %d after %d", e.Key, e.Revision, last)
			}
			last = e.Revision
			if is {
				delete(missing, e.Key)
			}
		case err := <-ended:
			t.Fatalf("the watch ended: %v", err)
		case <-deadline:
			t.Fatalf("%d records were never told", len(missing))
		}
	}
}

// The chunks of a value go with it, and those of a value that was not stored too.
func TestChunksThatNobodyNeedsGo(t *testing.T) {
	node := start(t, server.Options{StoreDir: t.TempDir()})
	s, err := Open(Options{URLs: []string{node.ClientURL()}, answer: patience / 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	a := open(t, s)
	ctx := t.Context()
	messages := func() uint64 {
		t.Helper()
		info, err := a.stream.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs
	}
	value := make([]byte, 2<<20)
	first, err := a.Create(ctx, "x", value)
	if err != nil {
		t.Fatal(err)
	}
	whole := messages() // a record and its chunks
	second, err := a.Update(ctx, "x", value, first)
	if n := messages(); err != nil || n != whole {
		t.Errorf("after a value of the same size there are %d messages, not %d (%v)", n, whole, err)
	}
	if _, err := a.Update(ctx, "x", value, first); !errors.Is(err, kv.ErrConflict) || messages() != whole {
		t.Errorf("after a conflict there are %d messages, not %d (%v)", messages(), whole, err)
	}
	third, err := a.Update(ctx, "x", nil, second)
	if err != nil || messages() != 1 {
		t.Errorf("after a small value there are %d messages (%v)", messages(), err)
	}
	if _, err = a.Update(ctx, "x", value, third); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(ctx, "x", 0); err != nil || messages() != 1 {
		t.Errorf("after a deletion there are %d messages (%v)", messages(), err)
	}
	// A value may look like a reference.
	fake := reference + "none 1 1"
	if _, err := a.Create(ctx, "y", []byte(fake)); err != nil {
		t.Fatal(err)
	}
	if e, err := a.Get(ctx, "y"); err != nil || string(e.Value) != fake {
		t.Errorf("got %q, %v", e.Value, err)
	}
	// A record whose chunks were lost is an error.
	a.drop(ctx, a.note("y", ""))
	if e, err := a.Get(ctx, "y"); !errors.Is(err, errNoChunk) {
		t.Errorf("got %q, %v", e.Value, err)
	}
}

// What NATS refuses is no failure to reach it, and is said in its words.
func TestWhatNATSRefuses(t *testing.T) {
	s := start(t, server.Options{StoreDir: t.TempDir(), Users: []*server.User{{Username: "us", Password: "x", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"$KV.dynmcp_denied.>"}}, Subscribe: &server.SubjectPermission{Allow: []string{">"}}}}}})
	store, err := Open(Options{URLs: []string{strings.Replace(s.ClientURL(), "//", "//us:x@", 1)}, Logger: nil})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		want   string
	}{
		"full":   {func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 100, jetstream.DiscardNew }, "maximum bytes exceeded"},
		"large":  {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100 }, "message size exceeds maximum allowed"},
		"sealed": {func(c *jetstream.StreamConfig) { c.Sealed = true }, "sealed stream"},
		"denied": {func(*jetstream.StreamConfig) {}, "permissions violation"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := store.Bucket(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := store.js.Stream(t.Context(), "KV_dynmcp_"+name)
			if err != nil {
				t.Fatal(err)
			}
			config := stream.CachedInfo().Config
			c.change(&config)
			if _, err := store.js.UpdateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			_, err = b.Put(t.Context(), "key", make([]byte, 1000))
			if err == nil || errors.Is(err, kv.ErrUnavailable) || !strings.Contains(err.Error(), "NATS refuses it") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want that NATS refuses it: %s", err, c.want)
			}
		})
	}
}
