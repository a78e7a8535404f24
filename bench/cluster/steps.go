//go:build linux

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
)

// load makes calls while nodes have faults.
func (p *proof) load() error {
	c, err := p.launch("load", setting{servers: servers})
	if err != nil {
		return err
	}
	defer c.close()
	w := &crowd{cluster: c, hosts: p.hosts, calls: p.calls, lasts: p.lasts, servers: servers}
	storm := &storm{cluster: c, every: p.every, steady: p.steady, stop: make(chan struct{}), first: make(chan struct{})}
	if p.every > 0 {
		storm.start()
	}
	w.start()
	w.wait()
	took := time.Since(w.began)
	faults, err := storm.end()
	fmt.Printf("  %d calls of %d hosts in %v, %d faults\n", p.calls, p.hosts, took.Round(time.Second), len(faults))
	if err == nil {
		err = c.healed()
	}
	if err != nil {
		p.Fail("%v", err)
	}
	if p.every > 0 && !storm.stoppedOwner() {
		p.Fail("no replica that ran servers was stopped: the calls must last longer")
	}
	return w.judge(faults)
}

// healed waits until all nodes work, and every server answers through every replica.
func (c *cluster) healed() error {
	for _, n := range c.all() {
		if err := n.works(); err != nil {
			return err
		}
	}
	return c.everyServer(servers)
}

// rolling restarts replicas one after the other under load, twice.
func (p *proof) rolling() error {
	c, err := p.launch("rolling", setting{servers: servers})
	if err != nil {
		return err
	}
	defer c.close()
	w := &crowd{cluster: c, hosts: p.hosts, calls: 1 << 30, servers: servers, stop: make(chan struct{})}
	w.start()
	var faults []fault
	for range 2 {
		for i, n := range c.replicas {
			began := time.Now()
			f := fault{node: n, replica: i, kind: ended, from: ledger.Now()}
			if err = n.end(syscall.SIGTERM); err != nil {
				break
			}
			drained := time.Since(began)
			if err = n.start(); err != nil {
				break
			}
			if err = n.works(); err != nil {
				break
			}
			f.to = ledger.Now()
			faults = append(faults, f)
			fmt.Printf("  %s ended in %v and works again after %v\n", n.name, drained.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
		}
	}
	close(w.stop)
	w.wait()
	if err != nil {
		p.Fail("%v", err)
	}
	w.mustSucceed("calls that failed while replicas were restarted", forgotten)
	return w.judge(faults)
}

// mustSucceed judges that each request succeeded, or has one of the fates in but.
func (w *crowd) mustSucceed(what string, but ...int) {
	failed := 0
	for _, r := range w.records {
		fine := r.fate == succeeded
		for _, fate := range but {
			fine = fine || int(r.fate) == fate
		}
		if !fine {
			failed++
			if failed <= 10 {
				fmt.Printf("  %s by %s, session of %s: %s: %.300s\n", w.describe(r), w.name(r.entry), w.name(r.owner), fateNames[r.fate], r.text)
			}
		}
	}
	w.Must(what, failed, 0)
}

// withoutNATS kills all servers of NATS, under load of servers that do not need NATS.
func (p *proof) withoutNATS() error {
	c, err := p.launch("nats", setting{servers: servers})
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.everyServer(servers); err != nil { // start them
		return err
	}
	var others []server
	for _, s := range servers {
		if s.place != "one" {
			others = append(others, s)
		}
	}
	w := &crowd{cluster: c, hosts: p.hosts, calls: 1 << 30, servers: others, stop: make(chan struct{})}
	w.start()
	for _, n := range c.nats {
		if err := n.end(syscall.SIGKILL); err != nil {
			return err
		}
	}
	began := time.Now()
	for _, n := range c.replicas {
		if err := n.says("degraded"); err != nil {
			p.Fail("%v", err)
		}
	}
	fmt.Printf("  all replicas say degraded after %v\n", time.Since(began).Round(10*time.Millisecond))
	time.Sleep(time.Until(began.Add(30 * time.Second))) // longer than a replica may run servers without NATS
	for _, n := range c.nats {
		if err := n.start(); err != nil {
			return err
		}
	}
	began = time.Now()
	for _, n := range c.all() {
		if err := n.works(); err != nil {
			p.Fail("%v", err)
		}
	}
	fmt.Printf("  all nodes work again %v after the servers of NATS were started\n", time.Since(began).Round(10*time.Millisecond))
	close(w.stop)
	w.wait()
	w.mustSucceed("calls that failed, or sessions that were lost, while there was no NATS")
	if err := c.everyServer(servers); err != nil {
		p.Fail("%v", err)
	}
	return w.judge(nil)
}

// says waits until the health of a node contains a word.
func (n *node) says(what string) error {
	var said string
	var err error
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, said, err = n.ask(); err == nil && strings.Contains(said, what) {
			return nil
		}
	}
	return fmt.Errorf("%s does not say %s after %v: %s %w", n.name, what, bound, said, err)
}

// serve serves a config until SIGTERM.
func (p *proof) serve(config string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	c, err := p.launch("serve", setting{config: config})
	if err != nil {
		return err
	}
	defer c.close()
	fmt.Printf("url=%s/mcp\n", c.url)
	<-stop
	return nil
}

// everyServer waits until each server answers through every replica.
func (c *cluster) everyServer(servers []server) error {
	for i := range c.replicas {
		for _, s := range servers {
			if err := c.answers(i, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// answers waits until a server answers through a replica.
func (c *cluster) answers(replica int, s server) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	h := c.direct(replica, client)
	var err error
	for end := time.Now().Add(bound); time.Now().Before(end); pause() {
		if err = h.echo(s.name, fmt.Sprintf("probe-%d", c.probes.Add(1))); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer through %s: %w", s.name, c.replicas[replica].name, err)
}
