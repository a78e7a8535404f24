package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/issuer"
	"github.com/dynmcp/dynmcp/bench/internal/stacks"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// A sharing has the sizes of the attacks, and limits for the results.
type sharing struct {
	connections int           // idle, or with a part of a header or body
	handshakes  int           // of one user or address
	unread      int           // answers of 9 MB
	floods      int           // notifications of each kind
	phase       time.Duration // before and after the attack, and least time of it
	idle        time.Duration // gateway.session_idle
	rest        time.Duration // until memory must be released
	more        int           // MB of RSS that may be left then
}

// attacks returns the full sizes, or smaller ones for which CI has time.
func attacks(short bool) sharing {
	if short {
		return sharing{connections: 5000, handshakes: 3000, unread: 60, floods: 2000, phase: 3 * time.Second, idle: 8 * time.Second, rest: 20 * time.Second, more: 64}
	}
	return sharing{connections: 5000, handshakes: 20_000, unread: 200, floods: 10_000, phase: 20 * time.Second, idle: time.Minute, rest: 20 * time.Second, more: 64}
}

const (
	goodHosts = 100
	goodPause = 200 * time.Millisecond // between two calls of a host
	sharedMB  = 128                    // gateway.max_held_bytes
	refusable = 100                    // one of so many calls may be refused with not_sent
	turnable  = 20                     // one of so many newcomers may be turned away
	// newcomerLate is how much longer the median call of a newcomer may take during the
	// attack, if the attack does not slow the machine down.
	newcomerLate = 200 * time.Millisecond
	// Attackers run on the same cores, and slow down the calls of a bare server in our process.
	// During the attack, p99 may be twice that before, multiplied by this slowdown. To that is
	// added the p99 of the bare server for each wait for a core: in the host, in dynmcp in both
	// directions, and in the server.
	busyHops = 4
	// A stall delays one call of each good host. With fewer calls than this, p99 is that of
	// one stall, and is not judged.
	fewCalls = 100 * goodHosts
	// sessionKB and connectionKB are the memory of one session and connection. Go lets the heap
	// grow to twice the memory in use.
	sessionKB, connectionKB = 20, 20
	// lineMB is the room for a line that a server is writing, up to the largest answer. It is
	// on no account, and nothing is shed for it.
	lineMB = 16
)

// shared lets good hosts call before, during and after attacks, first with tokens that
// identify users and then with addresses alone.
func (s *soak) shared(size sharing) error {
	users, err := issuer.New("soak")
	if err != nil {
		return err
	}
	defer users.Close()
	for _, by := range []*issuer.Issuer{users, nil} {
		if err := s.share(size, by); err != nil {
			return err
		}
	}
	return nil
}

// A gathering is a dynmcp with good hosts and attackers.
type gathering struct {
	*host
	size  sharing
	users *issuer.Issuer // nil if only addresses identify hosts

	phase   atomic.Int32 // index in figs
	figs    [3]figures
	bad     atomic.Int64 // bad connections
	mostBad int64
	failed  atomic.Int64

	peak, mostHeld int // RSS and dynmcp_held_bytes during the attack, in MB
}

var phases = [3]string{"before", "during", "after"}

// figures are the results of good hosts in one phase.
type figures struct {
	mu       sync.Mutex
	took     []time.Duration // calls of hosts with a session or a connection
	fresh    []time.Duration // calls of newcomers, with the time to connect
	bare     []time.Duration // requests to a server that does nothing, in our process
	refused  int             // with not_sent
	turned   int             // newcomers whose connection was closed without an answer
	failures int             // others
}

func (s *soak) share(size sharing, users *issuer.Issuer) error {
	by, gateway := "address", map[string]any{"max_held_bytes": sharedMB << 20, "session_idle": size.idle.String()}
	if users != nil {
		by, gateway["issuers"], gateway["audience"] = "user", []string{users.URL}, users.Audience
	}
	set := setting{entries: []entry{{name: "good"}, {name: "large", fields: map[string]any{"description": "Large results"}}, {name: "floods"}}, serves: true, more: map[string]any{"gateway": gateway}}
	token := ""
	if users != nil {
		token = users.Token("good-0")
	}
	fresh, err := s.launch(set)
	if err != nil {
		return err
	}
	defer fresh.End()
	fresh.token = token
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
	h.token = token
	if _, _, err := h.restOverHTTP(set.entries); err != nil {
		return err
	}
	g := &gathering{host: h, size: size, users: users}
	quiet := h.status("VmRSS:") >> 10
	if err := g.meet(); err != nil {
		s.Fail("%v", err)
	}
	there, err := h.sessions()
	if err != nil {
		return err
	}
	left := there
	within(3*size.idle, func() bool { left, err = h.sessions(); return err != nil || left == 0 })
	if err != nil {
		return err
	}
	after, _, err := h.restOverHTTP(set.entries)
	if err != nil {
		return err
	}
	last := 0
	within(size.rest, func() bool { last = h.status("VmRSS:") >> 10; return last <= quiet+size.more/2 })
	g.print(by)
	fmt.Printf("  %d MB were held at most, of %d (gateway.max_held_bytes)\n", g.mostHeld, sharedMB)
	fmt.Printf("  RSS %d MB before, %d at most, %d at the end; %d sessions when the attack was over, %d when they were idle for %v\n", quiet, g.peak, last, there, left, size.idle)
	s.judgeShared(g, quiet)
	if last > quiet+size.more {
		s.Fail("RSS is %d MB at the end, %d before", last, quiet)
	}
	s.Must("sessions left", left, 0)
	s.compare("shared", before, after, goroutines, stacks.Parse(h.Quit()))
	s.Must("processes left", h.remaining(), 0)
	return nil
}

// meet lets good hosts call in all phases, and attacks in the second.
func (g *gathering) meet() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var good sync.WaitGroup
	defer good.Wait()
	defer cancel()
	began := make(chan error, goodHosts)
	for i := range goodHosts {
		good.Go(func() { g.good(ctx, i, began) })
	}
	for range goodHosts {
		if err := <-began; err != nil {
			return err
		}
	}
	good.Go(func() { g.newcomers(ctx) })
	good.Go(func() { g.bare(ctx) })
	time.Sleep(g.size.phase)
	g.phase.Store(1)
	err := g.attack()
	g.phase.Store(2)
	time.Sleep(g.size.phase)
	return err
}

// client returns a client that connects from an address in 127.0.0.0/8.
func client(address string) *http.Client {
	c := web.NewClient()
	c.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
	return c
}

// as returns a host with the token of a user, or with an address if there are no tokens.
func (g *gathering) as(user, address string) (h *web.Host, close func()) {
	if g.users != nil {
		address = "127.0.0.1"
	}
	c := client(address)
	h = web.NewHost(g.url+"/mcp", c)
	if g.users != nil {
		h.Token = g.users.Token(user)
	}
	return h, c.CloseIdleConnections
}

// good runs a good host. Half of them have a session, and half of those also a stream.
func (g *gathering) good(ctx context.Context, i int, began chan<- error) {
	h, closeIdle := g.as(fmt.Sprint("good-", i), fmt.Sprintf("127.0.1.%d", i+1))
	defer closeIdle()
	h.Stateless = i%2 == 1
	if !h.Stateless {
		if err := h.Handshake(ctx); err != nil {
			began <- err
			return
		}
		defer func() { _ = h.End(context.WithoutCancel(ctx)) }() // a session that is left is counted later
	}
	c := &crowd{tally: newTally(func(int) bool { return false })}
	if i%4 == 0 {
		end, err := c.listen(ctx, h)
		if err != nil {
			began <- err
			return
		}
		defer end()
	}
	began <- nil
	tick := time.NewTicker(goodPause)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		g.call(ctx, h, n, func(f *figures) *[]time.Duration { return &f.took }, nil)
	}
}

// newcomers calls as one new user after the other, each with a new connection.
func (g *gathering) newcomers(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		h, closeIdle := g.as(fmt.Sprint("new-", n), fmt.Sprintf("127.0.2.%d", n%250+1))
		h.Stateless = true
		g.call(ctx, h, n, func(f *figures) *[]time.Duration { return &f.fresh }, closeIdle)
		select {
		case <-ctx.Done():
		case <-time.After(goodPause / 4):
		}
	}
}

// bare makes as many requests to a server that does nothing, which shows the slowdown of
// the machine. It uses as many hosts, because one alone would hardly notice a stall.
func (g *gathering) bare(ctx context.Context) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = goodHosts
	var hosts sync.WaitGroup
	defer hosts.Wait()
	for range goodHosts {
		hosts.Go(func() { g.callBare(ctx, server) })
	}
}

func (g *gathering) callBare(ctx context.Context, server *httptest.Server) {
	tick := time.NewTicker(goodPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		phase, began := g.phase.Load(), time.Now()
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			continue // not counted
		}
		resp.Body.Close()
		f := &g.figs[phase]
		f.mu.Lock()
		f.bare = append(f.bare, time.Since(began))
		f.mu.Unlock()
	}
}

// call makes a call and records its result.
func (g *gathering) call(ctx context.Context, h *web.Host, n int, of func(*figures) *[]time.Duration, then func()) {
	if then != nil {
		defer then()
	}
	phase := g.phase.Load()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), hosts.Silence)
	defer cancel()
	began := time.Now()
	messages, err := h.Call(limited, fmt.Sprint(n), "use_tool", use("good/echo", nonce(n)))
	took := time.Since(began)
	if err == nil && len(messages) == 0 {
		err = fmt.Errorf("no answer")
	}
	said := ""
	if err == nil {
		var a answer
		if a, err = hosts.Parse(string(messages[len(messages)-1])); err == nil && string(a.Result.StructuredContent) != nonce(n) {
			said, err = web.Outcome(a.Line), a.Good("call")
			if err == nil {
				err = fmt.Errorf("another's answer: %.200s", a.Line)
			}
		}
	} else {
		said = web.Outcome(err.Error())
	}
	f := &g.figs[phase]
	f.mu.Lock()
	*of(f) = append(*of(f), took)
	switch {
	case err == nil:
	case said == "not_sent":
		f.refused++
	case said == "" && then != nil && len(messages) == 0:
		f.turned++
	default:
		f.failures++
	}
	f.mu.Unlock()
	if err != nil && g.failed.Add(1) <= 10 {
		fmt.Printf("  %s: a call failed after %v: %.300v\n", phases[phase], rounded(took), err)
	}
}

// quantile returns a quantile of times, or 0 if there are none.
func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(took))[min(int(q*float64(len(took))), len(took)-1)]
}

func (g *gathering) print(by string) {
	fmt.Printf("shared, by %s: calls of %d good hosts beside %d bad connections, %d handshakes, %d unread answers of 9 MB and %d notifications of each kind\n",
		by, goodHosts, g.mostBad, g.size.handshakes, g.size.unread, g.size.floods)
	fmt.Printf("  %-8s %8s %10s %12s %9s %10s %10s %16s %14s %10s\n", "", "calls", "refused", "turned away", "failures", "p50", "p99", "of newcomers p50", "p99", "bare p99")
	for i := range g.figs {
		f := &g.figs[i]
		micro := func(took []time.Duration, q float64) time.Duration {
			return quantile(took, q).Round(10 * time.Microsecond)
		}
		fmt.Printf("  %-8s %8d %10d %12d %9d %10v %10v %16v %14v %10v\n", phases[i], len(f.took)+len(f.fresh), f.refused, f.turned, f.failures,
			micro(f.took, .5), micro(f.took, .99), micro(f.fresh, .5), micro(f.fresh, .99), micro(f.bare, .99))
	}
}

// judgeHeld judges the greatest dynmcp_held_bytes.
func (s *soak) judgeHeld(g *gathering) {
	if most := sharedMB + lineMB; g.mostHeld > most || g.mostHeld == 0 {
		s.Fail("%d MB were held, must be some and %d at most", g.mostHeld, most)
	}
}

// judgeShared judges the calls of good hosts and the memory of dynmcp.
func (s *soak) judgeShared(g *gathering, quiet int) {
	before, during := &g.figs[0], &g.figs[1]
	for i := range g.figs {
		f := &g.figs[i]
		s.Must("calls of good hosts that failed "+phases[i], f.failures, 0)
		if f.turned*turnable > len(f.fresh) {
			s.Fail("%d of %d newcomers were turned away %s", f.turned, len(f.fresh), phases[i])
		}
		if calls := len(f.took) + len(f.fresh); f.refused*refusable > calls {
			s.Fail("%d of %d calls of good hosts were refused %s", f.refused, calls, phases[i])
		}
	}
	slower := func(q float64) float64 {
		return max(1, float64(quantile(during.bare, q))/float64(max(quantile(before.bare, q), time.Microsecond)))
	}
	was, is, bare := quantile(before.took, .99), quantile(during.took, .99), quantile(during.bare, .99)
	if most := time.Duration(2*slower(.99)*float64(was)) + busyHops*bare; is > most && len(during.took) >= fewCalls {
		s.Fail("p99 of good hosts was %v and is %v beside the attack, must be %v at most", was, is, most)
	}
	if was, is := quantile(before.fresh, .5), quantile(during.fresh, .5); is > was+time.Duration(slower(.5)*float64(newcomerLate)) || len(during.fresh) == 0 {
		s.Fail("a newcomer's call took %v and takes %v beside the attack, %d were made", was, is, len(during.fresh))
	}
	s.judgeHeld(g)
	if most := quiet + 2*(sharedMB+g.size.handshakes*sessionKB>>10+g.size.connections*connectionKB>>10); g.peak > most {
		s.Fail("RSS was %d MB, must be %d at most", g.peak, most)
	}
	if g.mostBad < int64(g.size.connections/2) {
		s.Fail("only %d bad connections could be made", g.mostBad)
	}
}
