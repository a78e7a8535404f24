//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

// bound is the longest wait for anything.
var bound = 2 * time.Minute

const (
	nodes = 3 // replicas, and as many servers of NATS
	// token authorizes hosts.
	token = "the-token-of-the-proof"
)

// The ports of nodes. Each node has an address of its own.
const (
	hostPort    = 8080
	peerPort    = 7946
	natsPort    = 4222
	routePort   = 6222
	monitorPort = 8222
)

// A server is an upstream of the cluster.
type server struct {
	name  string
	place string        // one, each, or "" for a server over HTTP
	slow  time.Duration // the time it takes to exit
	lazy  bool          // it is started for its first call
}

// servers are the servers of most steps.
var servers = []server{
	{name: "one-0", place: "one"}, {name: "one-1", place: "one", lazy: true}, {name: "one-2", place: "one", slow: 300 * time.Millisecond}, {name: "one-3", place: "one", lazy: true, slow: 100 * time.Millisecond},
	{name: "each-0", place: "each"}, {name: "each-1", place: "each", lazy: true}, {name: "http-0"},
}

// A cluster is processes of replicas and of NATS, behind a balancer.
type cluster struct {
	*proof
	dir      string
	net      *network
	config   string
	nats     []*node
	replicas []*node
	web      *hosts.Host // the server over HTTP
	balancer *balancer
	url      string // of the balancer
	probes   atomic.Int64
}

// A setting configures a cluster.
type setting struct {
	servers []server
	gateway map[string]any           // more members of "gateway" in the config
	config  string                   // the path of a complete config; "" writes one
	dynmcp  func(replica int) string // the program of a replica; nil is the same for all
	shared  func(c *cluster) error   // stores the config in the cluster, from which replicas read it
	local   bool                     // on the loopback also with -namespaces
}

// launch starts a cluster and waits until all nodes work.
func (p *proof) launch(step string, set setting) (*cluster, error) {
	c := &cluster{proof: p, dir: filepath.Join(p.dir, step)}
	if err := c.start(set); err != nil {
		for _, n := range c.all() {
			if text := n.tail(); text != "" {
				fmt.Printf("-- the end of the log of %s:\n%s\n", n.name, text)
			}
		}
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) start(set setting) (err error) {
	if err := os.MkdirAll(c.ledgers(), 0o700); err != nil {
		return err
	}
	if c.net, err = newNetwork(c.spaces && !set.local); err != nil {
		return err
	}
	if err := c.startNATS(); err != nil {
		return err
	}
	if c.config = set.config; c.config == "" {
		if err := c.configure(set); err != nil {
			return err
		}
	}
	if err := c.startReplicas(set); err != nil {
		return err
	}
	var targets []string
	for i := range c.replicas {
		targets = append(targets, c.address(i))
	}
	if c.balancer, err = balance(targets); err != nil {
		return err
	}
	c.url = "http://" + c.balancer.ln.Addr().String()
	return nil
}

func (c *cluster) ledgers() string { return filepath.Join(c.dir, "ledgers") }

func (c *cluster) all() []*node { return append(append([]*node(nil), c.replicas...), c.nats...) }

// address returns the address of a replica for hosts.
func (c *cluster) address(replica int) string {
	return fmt.Sprintf("%s:%d", c.net.at(toHosts, replica+1), hostPort)
}

// stores returns the addresses of NATS.
func (c *cluster) stores() string {
	var all []string
	for i := range nodes {
		all = append(all, fmt.Sprintf("nats://%s:%d", c.net.at(toNATS, natsNumber(i)), natsPort))
	}
	return strings.Join(all, ",")
}

func natsNumber(i int) int { return 11 + i }

func (c *cluster) startNATS() error {
	var routes []string
	for i := range nodes {
		routes = append(routes, fmt.Sprintf("nats://%s:%d", c.net.at(toNATS, natsNumber(i)), routePort))
	}
	for i := range nodes {
		name, number := fmt.Sprintf("nats%d", i+1), natsNumber(i)
		if err := c.net.add(name, number, toNATS, toHosts); err != nil {
			return err
		}
		at := c.net.at(toNATS, number)
		listen := at
		if c.net.spaces {
			listen = "0.0.0.0" // its health is read on another network
		}
		n, err := c.newNode(name, c.natsServer, "--name", name, "--addr", listen, "--port", fmt.Sprint(natsPort), "--client_advertise", fmt.Sprintf("%s:%d", at, natsPort),
			"--cluster_name", "proof", "--cluster", fmt.Sprintf("nats://%s:%d", at, routePort), "--routes", strings.Join(routes, ","),
			"--jetstream", "--store_dir", filepath.Join(c.dir, name, "jetstream"), "--http_port", fmt.Sprint(monitorPort))
		if err != nil {
			return err
		}
		n.health = fmt.Sprintf("http://%s:%d/healthz", c.net.at(toHosts, number), monitorPort)
		c.nats = append(c.nats, n)
		if err := n.start(); err != nil {
			return err
		}
	}
	for _, n := range c.nats {
		if err := n.works(); err != nil {
			return err
		}
	}
	return nil
}

// configure writes the config, and starts the server over HTTP.
func (c *cluster) configure(set setting) error {
	all := map[string]any{}
	for _, s := range set.servers {
		fields := map[string]any{}
		if s.place == "" {
			if err := c.startWeb(s.name); err != nil {
				return err
			}
			fields["url"] = c.web.URL
		} else {
			fields["command"], fields["place"] = c.upstream, s.place
			fields["args"] = []string{"-name", s.name, "-ledgers", c.ledgers(), "-linger", s.slow.String()}
		}
		if s.lazy {
			fields["description"] = "Echoes nonces."
		}
		all[s.name] = fields
	}
	gateway := map[string]any{"token": token, "allowed_hosts": []string{"127.0.0.1"}}
	maps.Copy(gateway, set.gateway)
	text, err := json.Marshal(map[string]any{"mcp": all, "startup_wait": "60s", "gateway": gateway})
	if err != nil {
		return err
	}
	c.config = filepath.Join(c.dir, "mcp.json")
	return os.WriteFile(c.config, text, 0o600)
}

func (c *cluster) startWeb(name string) (err error) {
	cmd := exec.Command(c.upstream, "-name", name, "-ledgers", c.ledgers(), "-http", c.net.own()+":0")
	cmd.Env = append(os.Environ(), c.marker)
	c.web, err = hosts.Serve(cmd)
	return err
}

// startReplicas generates the key and starts the replicas with it.
func (c *cluster) startReplicas(set setting) error {
	key, err := exec.Command(c.dynmcp, "cluster", "key").Output()
	if err != nil {
		return fmt.Errorf("dynmcp cluster key: %w", err)
	}
	if err := os.WriteFile(c.keyFile(), key, 0o600); err != nil {
		return err
	}
	if set.shared != nil {
		if err := set.shared(c); err != nil {
			return err
		}
	}
	for i := range nodes {
		name, number := fmt.Sprintf("r%d", i+1), i+1
		if err := c.net.add(name, number, toNATS, toReplicas, toHosts); err != nil {
			return err
		}
		program := c.dynmcp
		if set.dynmcp != nil {
			program = set.dynmcp(i)
		}
		words := []string{program, "serve", "--http", c.address(i), fmt.Sprintf("--listen-public=%t", c.net.spaces), "--replica", name,
			"--cluster", c.stores(), "--cluster-key", c.keyFile(), "--peer-addr", fmt.Sprintf("%s:%d", c.net.at(toReplicas, number), peerPort)}
		if set.shared == nil {
			words = append(words, "-c", c.config)
		}
		n, err := c.newNode(name, words...)
		if err != nil {
			return err
		}
		n.health = "http://" + c.address(i) + "/health"
		c.replicas = append(c.replicas, n)
		if err := n.start(); err != nil {
			return err
		}
	}
	for _, n := range c.replicas {
		if err := n.works(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) keyFile() string { return filepath.Join(c.dir, "key") }

// command returns the output of dynmcp with arguments and the flags of the cluster.
func (c *cluster) command(program string, words ...string) (string, error) {
	out, err := c.commandOf(program, words...).CombinedOutput()
	return string(out), err
}

func (c *cluster) commandOf(program string, words ...string) *exec.Cmd {
	argv := slices.Concat([]string{program}, words, []string{"--cluster", c.stores(), "--cluster-key", c.keyFile()})
	if c.net.spaces {
		argv = append(c.net.enter("r1"), argv...)
	}
	return exec.Command(argv[0], argv[1:]...)
}

// ask reads the health of a node.
func (n *node) ask() (status int, said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.health, nil)
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// works waits until a node is healthy and not degraded.
func (n *node) works() error {
	var status int
	var said string
	var err error
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		n.mu.Lock()
		ended := n.ended
		n.mu.Unlock()
		select {
		case <-ended:
			return fmt.Errorf("%s has ended: %w\n%s", n.name, n.how, n.tail())
		default:
		}
		if status, said, err = n.ask(); err == nil && status == http.StatusOK && !strings.Contains(said, "degraded") {
			return nil
		}
	}
	return fmt.Errorf("%s does not work after %v: status %d, %q, error %v", n.name, bound, status, said, err)
}

// close ends all nodes by SIGTERM, and judges that no process is left.
func (c *cluster) close() {
	if c.balancer != nil {
		c.balancer.close()
	}
	for _, group := range [][]*node{c.replicas, c.nats} {
		errs := make([]error, len(group))
		var ending sync.WaitGroup
		for i, n := range group {
			ending.Go(func() { errs[i] = n.end(syscall.SIGTERM) })
		}
		ending.Wait()
		if err := errors.Join(errs...); err != nil {
			c.Fail("%v", err)
		}
	}
	if c.web != nil {
		c.web.Terminate()
	}
	left := procs.Marked(c.marker)
	for end := time.Now().Add(30 * time.Second); len(left) > 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = procs.Marked(c.marker)
	}
	c.Must("processes left", len(left), 0)
	for _, pid := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		fmt.Printf("  process %d is left: %s\n", pid, strings.ReplaceAll(string(line), "\x00", " "))
		_ = syscall.Kill(pid, syscall.SIGKILL) // it has our marker
	}
	if c.net != nil {
		var errs []error
		for _, n := range c.all() {
			errs = append(errs, c.net.remove(n.name))
		}
		c.net.close()
		if err := errors.Join(errs...); err != nil {
			c.Fail("%v", err)
		}
	}
}
