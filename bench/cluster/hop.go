//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// busily is the name of measurements with busy replicas.
const busily = "beside replicas that are kept busy"

// hopCalls is the number of calls that are measured of each kind.
const hopCalls = 3000

// A direct is a host that calls one replica instead of the balancer.
type direct struct{ *web.Host }

// direct returns a host of the stateless era at a replica.
func (c *cluster) direct(replica int, client *http.Client) direct {
	h := web.NewHost("http://"+c.address(replica)+"/mcp", client)
	h.Token, h.Stateless = token, true
	return direct{h}
}

// echo makes a call. It is an error if the answer is not its nonce.
func (h direct) echo(server, nonce string) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	messages, err := h.Call(ctx, "1", "use_tool", fmt.Sprintf(`{"tool_name":"%s/echo","tool_input":{"nonce":%q}}`, server, nonce))
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return errors.New("no answer")
	}
	if fate, text := judgeAnswer(messages, "1", nonce); fate != succeeded {
		return fmt.Errorf("%s: %s", fateNames[fate], text)
	}
	return nil
}

// hop measures calls to a server with place "one", through its own replica and in turn through
// another: without sessions, and in sessions of another replica. Replicas are kept busy by eight hosts
// that call without a pause, which uses two cores: then each further process on the way waits twice
// for a processor, there and back. Calls through a relay measure that, so that the cost of the hop
// itself is known.
func (p *proof) hop() error {
	c, err := p.launch("hop", setting{servers: servers})
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.everyServer(servers); err != nil {
		return err
	}
	for _, busy := range []bool{false, true} {
		w := &crowd{cluster: c, hosts: 8, calls: 1 << 30, servers: []server{{name: "each-0", place: "each"}}, stop: make(chan struct{})}
		how := "beside idle replicas"
		if busy {
			how = busily
			w.start()
		}
		err := c.measureHop(how)
		close(w.stop)
		w.wait()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) measureHop(how string) error {
	owner, err := c.ownerOf("one-0")
	if err != nil {
		return err
	}
	other := (owner + 1) % nodes
	client := web.NewClient()
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	relayed, stop, err := c.relayTo(c.address(owner))
	if err != nil {
		return err
	}
	defer stop()
	// The sessions are at the owner of the server, so that only the way to the session differs.
	own, through, relay := c.direct(owner, client), c.direct(other, client), c.direct(owner, client)
	relay.Host = web.NewHost("http://"+relayed+"/mcp", client)
	relay.Token, relay.Stateless = token, true
	inOwn, inThrough := c.direct(owner, client), c.direct(other, client)
	inOwn.Stateless, inThrough.Stateless = false, false
	if err := inOwn.Handshake(ctx); err != nil {
		return err
	}
	inThrough.Join(inOwn.Session())
	defer func() { _ = inOwn.End(context.Background()) }()
	ways := []direct{own, through, inOwn, inThrough, relay}
	took := make([][]time.Duration, len(ways))
	for i := range hopCalls {
		for k := range ways {
			j := (i + k) % len(ways) // in different order each time
			began := time.Now()
			if err := ways[j].echo("one-0", fmt.Sprintf("hop-%d-%d-%d", c.probes.Add(1), i, j)); err != nil {
				return err
			}
			took[j] = append(took[j], time.Since(began))
		}
	}
	for _, m := range []struct {
		what     string
		way, own int
	}{{"a process that only passes on bytes", 4, 0}, {"a server of another replica", 1, 0}, {"a session of another replica", 3, 2}} {
		a, b := half(took[m.own]), half(took[m.way])
		fmt.Printf("  %s, %s: p50 %v, and %v where it is: a hop takes %v\n", m.what, how, b, a, b-a)
	}
	if how == busily {
		return nil // the other hosts use more than a hop
	}
	return c.measureHopCPU([]direct{own, through, inOwn, inThrough})
}

// measureHopCPU makes calls in one way after the other, and prints how much more CPU of the replicas
// the second and the fourth use than the one before.
func (c *cluster) measureHopCPU(ways []direct) error {
	used := make([]time.Duration, len(ways))
	for j, way := range ways {
		before := c.processorTime()
		for i := range hopCalls {
			if err := way.echo("one-0", fmt.Sprintf("hop-cpu-%d-%d-%d", c.probes.Add(1), i, j)); err != nil {
				return err
			}
		}
		used[j] = (c.processorTime() - before) / hopCalls
	}
	fmt.Printf("  processors of the replicas, a call: %v, to a server of another replica %v more, in a session of another %v more\n",
		used[0], used[1]-used[0], used[3]-used[2])
	return nil
}

// processorTime returns the CPU time of the replicas.
func (c *cluster) processorTime() (used time.Duration) {
	for _, n := range c.replicas {
		n.mu.Lock()
		used += procs.CPU(n.cmd.Process.Pid)
		n.mu.Unlock()
	}
	return used
}

// relayTo starts a process that passes connections on to an address, until stop is called.
func (c *cluster) relayTo(to string) (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-relay", to)
	cmd.Env = append(os.Environ(), c.marker)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close()
		_ = cmd.Wait() // its exit status does not matter
	}
	if _, err = fmt.Fscanln(out, &address); err != nil {
		stop()
	}
	return address, stop, err
}

// relay is the main function of that process.
func relay(to string) error {
	b, err := balance([]string{to})
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Println(b.ln.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func half(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2].Round(time.Microsecond)
}

// ownerOf returns the replica that runs a server.
func (c *cluster) ownerOf(server string) (replica int, err error) {
	books, err := ledger.Read(c.ledgers())
	if err != nil {
		return 0, err
	}
	for _, p := range slices.Backward(books.Processes) {
		if p.Server == server {
			return slices.IndexFunc(c.replicas, func(n *node) bool { return n.name == p.Replica }), nil
		}
	}
	return 0, fmt.Errorf("no replica runs %s", server)
}
