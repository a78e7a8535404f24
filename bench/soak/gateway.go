package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/stacks"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

const (
	crowdSize   = 100 // hosts at once, half of them of each era
	brokenOff   = 500 // after so many calls, a host makes one whose answer it does not wait for
	sessionIdle = "10s"
)

// gateway begins sessions that are abandoned. Then it makes n calls as a hundred hosts
// over HTTP, some to servers that misbehave.
func (s *soak) gateway(n, abandoned int) error {
	set := setting{entries: callServers(), serves: true, more: map[string]any{"gateway": map[string]string{"session_idle": sessionIdle}}}
	fresh, err := s.launch(set)
	if err != nil {
		return err
	}
	defer fresh.End()
	before, _, err := fresh.restOverHTTP(set.entries)
	if err != nil {
		return err
	}
	goroutines := stacks.Parse(fresh.Quit())

	h, err := s.launch(set)
	if err != nil {
		return err
	}
	defer h.End()
	if err := s.abandon(h, abandoned); err != nil {
		return err
	}
	c := &crowd{host: h, calls: n, tally: newTally(func(id int) bool { _, may := callee(id); return may })}
	memory, err := c.work()
	if err != nil {
		s.judge(c.tally)
		return err
	}
	after, sessions, err := h.restOverHTTP(set.entries)
	if err != nil {
		return err
	}
	left := stacks.Parse(h.Quit())
	s.judge(c.tally)
	s.Must("messages on a stream that are for no call of its host", c.stray, 0)
	s.Must("sessions left", sessions, 0)
	s.judgeMemory("gateway", n, memory)
	s.compare("gateway", before, after, goroutines, left)
	s.Must("processes left", h.remaining(), 0)
	return nil
}

// abandon begins sessions that nobody ends, and waits until all are gone.
func (s *soak) abandon(h *host, count int) error {
	client := web.NewClient()
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), hosts.Silence)
	defer cancel()
	rss, began := h.status("VmRSS:")>>10, time.Now()
	var next atomic.Int64
	var work sync.WaitGroup
	failed := make(chan error, inFlight)
	for range inFlight {
		work.Go(func() {
			for next.Add(1) <= int64(count) {
				if err := web.NewHost(h.url+"/mcp", client).Handshake(ctx); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	work.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	took, most := time.Since(began), h.status("VmRSS:")>>10
	there, err := h.sessions()
	if err != nil {
		return err
	}
	for left := there; left > 0; time.Sleep(100 * time.Millisecond) {
		if left, err = h.sessions(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d abandoned sessions are not reclaimed", left, count)
		}
	}
	fmt.Printf("gateway: %d sessions begun in %v and abandoned, of which %d were there then; all are reclaimed. RSS %d MB before, %d with them, %d after\n",
		count, rounded(took), there, rss, most, h.status("VmRSS:")>>10)
	return nil
}

// sessions returns the number of sessions according to the metrics.
func (h *host) sessions() (int, error) {
	n, err := h.metric("dynmcp_sessions")
	return int(n), err
}

// metric fetches a metric that has no labels.
func (h *host) metric(name string) (float64, error) {
	req, err := http.NewRequest(http.MethodGet, h.url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	if h.token != "" {
		req.Header.Set("Authorization", "Bearer "+h.token)
	}
	req.Close = true // its connection is not counted
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	if !ok {
		return 0, fmt.Errorf("no %s in the metrics: %.300s", name, text)
	}
	return strconv.ParseFloat(value, 64)
}

// restOverHTTP calls rest with requests of a host over HTTP. It also returns the number of
// sessions after that host has ended its own.
func (h *host) restOverHTTP(servers []entry) (at standing, sessions int, err error) {
	client := web.NewClient()
	ctx, cancel := context.WithTimeout(context.Background(), hosts.Silence)
	defer cancel()
	asks := web.NewHost(h.url+"/mcp", client)
	asks.Token = h.token
	if err := asks.Handshake(ctx); err != nil {
		return at, 0, err
	}
	at, err = h.rest(servers, func(id, tool, arguments string) error {
		messages, err := asks.Call(ctx, quote(id), tool, arguments)
		if err != nil || len(messages) == 0 {
			return fmt.Errorf("%s: no answer: %w", id, err)
		}
		a, err := hosts.Parse(string(messages[len(messages)-1]))
		return errors.Join(err, a.Good(id))
	}, func() error {
		err := asks.End(ctx)
		client.CloseIdleConnections()
		if err == nil {
			sessions, err = h.sessions()
		}
		return err
	})
	return at, sessions, err
}

// A crowd is hosts over HTTP that share one dynmcp.
type crowd struct {
	host  *host
	calls int

	mu    sync.Mutex
	tally *tally
	stray int // messages for no call of their host
}

// work makes the calls and samples the memory of dynmcp a hundred times.
func (c *crowd) work() (memory []int, err error) {
	began := time.Now()
	var hosts sync.WaitGroup
	failed := make(chan error, crowdSize)
	for i := range crowdSize {
		hosts.Go(func() {
			if err := c.one(i); err != nil {
				failed <- fmt.Errorf("host %d: %w", i, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { hosts.Wait(); close(done) }()
	shown := 0
	for working := true; working; {
		select {
		case <-done:
			working = false
		case err := <-failed:
			return nil, err
		case <-time.After(10 * time.Millisecond):
		}
		c.mu.Lock()
		answered := c.tally.answered
		c.mu.Unlock()
		for answered/max(c.calls/100, 1) > len(memory) && len(memory) < 100 {
			memory = append(memory, c.host.status("VmRSS:")>>10)
		}
		if len(memory)/10 > shown {
			shown++
			fmt.Printf("gateway: %8d  RSS %d MB, %d descriptors, %d threads\n", answered, memory[len(memory)-1], c.host.descriptors(), c.host.status("Threads:"))
		}
	}
	fmt.Printf("gateway: %d calls of %d hosts in %v: %d lost, %d twice, %d misrouted; failed as they had to: %v\n",
		c.calls, crowdSize, rounded(time.Since(began)), c.tally.lost(), c.tally.twice, c.tally.misrouted, c.tally.outcomes)
	return memory, nil
}

// one runs host i. Every other host is stateless, and half of the rest have an open
// stream.
func (c *crowd) one(i int) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := web.NewClient() // not shared: dynmcp closes unused connections after 5 s, which may hit another host that just takes one
	defer client.CloseIdleConnections()
	h := web.NewHost(c.host.url+"/mcp", client)
	h.Stateless = i%2 == 1
	if !h.Stateless {
		if err := h.Handshake(ctx); err != nil {
			return err
		}
		if i%4 == 0 {
			end, err := c.listen(ctx, h)
			if err != nil {
				return err
			}
			defer end()
		}
		defer func() { err = errors.Join(err, h.End(ctx)) }()
	}
	for made := 1; ; made++ {
		c.mu.Lock()
		if len(c.tally.seen) == c.calls {
			c.mu.Unlock()
			return nil
		}
		id := c.tally.next()
		c.mu.Unlock()
		if err := c.call(ctx, h, id); err != nil {
			return fmt.Errorf("call %d: %w", id, err)
		}
		if made%brokenOff == 0 {
			gone, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			_, _ = h.Call(gone, quote("broken off"), "use_tool", use("hangs/echo", `{}`)) // it may fail
			cancel()
		}
	}
}

// call makes one call and counts all messages in the response.
func (c *crowd) call(ctx context.Context, h *web.Host, id int) error {
	ctx, cancel := context.WithTimeout(ctx, hosts.Silence)
	defer cancel()
	name, _ := callee(id)
	messages, err := h.Call(ctx, fmt.Sprint(id), "use_tool", use(name+"/echo", nonce(id)))
	if err != nil {
		return err
	}
	for _, line := range messages {
		a, err := hosts.Parse(string(line))
		if err != nil {
			return err
		}
		c.mu.Lock()
		switch {
		case a.Method != "": // progress, say
		case string(a.ID) != fmt.Sprint(id):
			c.tally.misrouted++
			fmt.Printf("  call %d got %.200s\n", id, line)
		default:
			err = c.tally.take(a)
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// listen reads the stream of a session, on which no answers may come, until end is
// called.
func (c *crowd) listen(ctx context.Context, h *web.Host) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := h.Listen(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer resp.Body.Close()
		for in := bufio.NewReader(resp.Body); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return // it was closed
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok && len(data) > 1 && !strings.Contains(data[:min(len(data), 64)], `"method"`) && json.Valid([]byte(data)) {
				c.mu.Lock()
				c.stray++
				c.mu.Unlock()
				fmt.Printf("  a stream got %.200s\n", data)
			}
		}
	}()
	return func() { cancel(); <-read }, nil
}
