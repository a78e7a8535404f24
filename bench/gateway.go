package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// gatewayScenarios are those of hosts over HTTP; what the upstream is on is put before
// their names.
var gatewayScenarios = []scenario{
	{"100 B", 100, text, 1, 3000, false, how{}},
	{"10 KB", 10 << 10, text, 1, 2000, false, how{}},
	{"1 MB", 1 << 20, text, 1, 100, false, how{}},
	{"100 B", 100, text, 64, 20000, false, how{}},
	{"10 KB", 10 << 10, text, 64, 10000, false, how{}},
	{"1 MB", 1 << 20, text, 64, 256, false, how{}},
}

// callingGateway measures the scenarios that are wanted, of hosts over HTTP. The
// pump is then frontpump.
func callingGateway(bin binaries, wanted func(scenario) bool, rounds int) error {
	upstream, url, err := startServer([]string{bin.httpupstream})
	if err != nil {
		return err
	}
	defer upstream.terminate()
	for _, to := range []struct{ name, entry, pump string }{
		{"stdio", fmt.Sprintf(`{"command": %q}`, bin.upstream), bin.upstream},
		{"HTTP", fmt.Sprintf(`{"url": %q}`, url), url},
	} {
		config, err := bin.write("gateway-"+to.name+".json", `{"mcp": {"upstream": %s}, "gateway": {"max_request_bytes": 8388608}}`, to.entry)
		if err != nil {
			return err
		}
		own := func(name, path string, era wayIn) variant {
			return variant{name, serve(path, config), "upstream/echo", era}
		}
		variants := []variant{
			{"pump", []string{bin.frontpump, to.pump}, "upstream/echo", overHTTP},
			own("dynmcp", bin.dynmcp, overHTTP),
			own("2026-07", bin.dynmcp, statelessHTTP),
		}
		if to.name == "HTTP" {
			variants = append([]variant{{"direct", []string{bin.httpupstream}, "echo", overHTTP}}, variants...)
		}
		for _, v := range bin.also {
			variants = append(variants, own(v.name, v.argv[0], overHTTP))
		}
		for _, s := range gatewayScenarios {
			s.name = "gateway to " + to.name + ", " + s.name
			if wanted(s) {
				if err := bin.measure(variants, s, rounds); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// startServer starts a command and returns the address that it prints.
func startServer(argv []string) (*process, string, error) {
	h, err := hosts.Serve(exec.Command(argv[0], argv[1:]...))
	if err != nil {
		return nil, "", err
	}
	return &process{cmd: h.Cmd, serving: h}, h.URL, nil
}

// terminate ends what startServer has started.
func (p *process) terminate() { p.serving.Terminate() }

// runHTTP measures one scenario on a process of its own.
func runHTTP(v variant, s scenario) (sample, error) {
	p, url, err := startServer(v.argv)
	if err != nil {
		return sample{}, err
	}
	defer p.terminate()
	c := &crowd{tool: v.tool, scenario: s, next: firstID}
	defer c.leave()
	if err := c.join(url, s.inFlight, v.way == statelessHTTP); err != nil {
		return sample{}, err
	}
	if _, err := c.drive(s.calls/10 + s.inFlight); err != nil {
		return sample{}, err
	}
	cpu, load := procs.CPU(p.cmd.Process.Pid), loadNow(p)
	got, err := c.drive(s.calls)
	got.cpu = (procs.CPU(p.cmd.Process.Pid) - cpu) / time.Duration(s.calls)
	got.foreign = loadNow(p).foreignSince(load)
	got.peak = p.usage().peak
	return got, err
}

// A crowd are hosts that call at once.
type crowd struct {
	tool     string
	scenario scenario
	hosts    []*web.Host
	clients  []*http.Client // of each host its own

	mu   sync.Mutex
	next int // number of a call
	end  int // the first that is not made
	took []time.Duration
}

// join adds so many hosts.
func (c *crowd) join(url string, count int, stateless bool) error {
	for range count {
		client := web.NewClient()
		h := web.NewHost(url, client)
		if h.Stateless = stateless; !stateless {
			if err := h.Handshake(context.Background()); err != nil {
				return err
			}
		}
		c.hosts, c.clients = append(c.hosts, h), append(c.clients, client)
	}
	return nil
}

func (c *crowd) leave() {
	for _, client := range c.clients {
		client.CloseIdleConnections()
	}
}

// drive makes so many calls, each host one after the other, and checks that each is
// answered with its own text.
func (c *crowd) drive(calls int) (sample, error) {
	c.end, c.took = c.next+calls, make([]time.Duration, 0, calls)
	failed := make(chan error, len(c.hosts))
	began := time.Now()
	for _, h := range c.hosts {
		go func() { failed <- c.one(h) }()
	}
	var err error
	for range c.hosts {
		err = errors.Join(err, <-failed)
	}
	total := time.Since(began)
	if err != nil {
		return sample{}, err
	}
	slices.Sort(c.took)
	return sample{p50: c.took[len(c.took)/2], p99: c.took[len(c.took)*99/100], rate: float64(calls) / total.Seconds()}, nil
}

// one makes calls as long as there are any to be made.
func (c *crowd) one(h *web.Host) error {
	calls := newCalls(c.tool, h.Meta(), c.scenario)
	for {
		c.mu.Lock()
		id := c.next
		if id == c.end {
			c.mu.Unlock()
			return nil
		}
		c.next++
		c.mu.Unlock()
		line := calls.number(id)
		began := time.Now()
		messages, err := h.Send(context.Background(), "use_tool", line)
		took := time.Since(began)
		if err != nil {
			return err
		}
		answer := messages[len(messages)-1]
		if is, text := answered(answer); is != id || text != id || len(answer) < c.scenario.size {
			return fmt.Errorf("a wrong answer to %d (id %d, text of %d, %d bytes): %.200s", id, is, text, len(answer), answer)
		}
		c.mu.Lock()
		c.took = append(c.took, took)
		c.mu.Unlock()
	}
}
