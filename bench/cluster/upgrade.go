//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/ledger"
	"github.com/dynmcp/dynmcp/bench/internal/web"
	"github.com/dynmcp/dynmcp/internal/mcptest/authserver"
)

// locked is the server that requires a login.
const locked = "locked"

// An upgrade is a cluster of the previous version that is upgraded to this version and downgraded.
type upgrade struct {
	*cluster
	older    string        // the program
	runs     [nodes]string // the program of each replica
	called   []server      // by hosts
	client   *http.Client
	auth     *authserver.Server // in front of the server that requires a login
	document map[string]any     // the config
	pushes   int
	passed   map[string]int // pairs of versions: of a replica that asks for a server with place "one", and of its owner
}

// upgrade upgrades a cluster of the previous version to this version, and downgrades it, one replica
// after the other, under load.
func (p *proof) upgrade(older string) error {
	u := &upgrade{older: older, runs: [nodes]string{older, older, older}, called: append(slices.Clone(servers), server{name: locked}),
		client: web.NewClient(), passed: map[string]int{}}
	defer u.client.CloseIdleConnections()
	c, err := p.launch("upgrade", setting{servers: servers, local: true, dynmcp: func(int) string { return older }, shared: u.prepare})
	if err != nil {
		return err
	}
	defer c.close()
	if err := u.check(); err != nil {
		return fmt.Errorf("a cluster of the previous version alone: %w", err)
	}
	w := &crowd{cluster: c, hosts: p.hosts, calls: 1 << 30, servers: u.called, stop: make(chan struct{})}
	w.start()
	faults, err := u.upAndDown()
	close(w.stop)
	w.wait()
	if err != nil {
		p.Fail("%v", err)
	}
	if err := u.losses(); err != nil {
		p.Fail("%v", err)
	}
	w.mustSucceed("calls that failed while replicas were replaced by those of another version", forgotten)
	logins := u.auth.State().Counts
	p.Must("tokens of logins that were used after they were renewed", logins["reuse"], 0)
	fmt.Printf("  logins were renewed %d times; what ran once was asked for %s\n", logins["refresh"], counts(u.passed))
	return w.judge(faults)
}

// counts returns counters as a text.
func counts(of map[string]int) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%s: %d", what, of[what]))
	}
	return strings.Join(all, ", ")
}

// upAndDown replaces each replica by one of this version, then by one of the previous, and checks the
// cluster after each.
func (u *upgrade) upAndDown() (faults []fault, err error) {
	for _, program := range []string{u.dynmcp, u.older} {
		for i, n := range u.replicas {
			began, f := time.Now(), fault{node: n, replica: i, kind: ended, from: ledger.Now()}
			if err := u.replace(i, program); err != nil {
				return faults, err
			}
			f.to = ledger.Now()
			faults = append(faults, f)
			fmt.Printf("  %s is of version %s after %v\n", n.name, u.version(program), time.Since(began).Round(10*time.Millisecond))
			if err := u.check(); err != nil {
				u.Fail("%s: %v", u.stage(), err)
			}
		}
	}
	return faults, nil
}

// replace ends a replica and starts another program in its place.
func (u *upgrade) replace(i int, program string) error {
	n := u.replicas[i]
	if err := n.end(syscall.SIGTERM); err != nil {
		return err
	}
	n.argv[len(u.net.enter(n.name))], u.runs[i] = program, program
	if err := n.start(); err != nil {
		return err
	}
	return n.works()
}

// losses kills a replica of each version in a mixed cluster, and prints how long its servers are
// missing.
func (u *upgrade) losses() error {
	for i, lost := range []int{1, 0} {
		if err := u.replace(i, u.dynmcp); err != nil {
			return err
		}
		stage, n, began := u.stage(), u.replicas[lost], time.Now()
		if err := n.end(syscall.SIGKILL); err != nil {
			return err
		}
		for j := range u.replicas {
			for _, s := range servers {
				if j == lost || s.place != "one" {
					continue
				}
				if err := u.answers(j, s); err != nil {
					return fmt.Errorf("%s; %s was killed: %w", stage, n.name, err)
				}
			}
		}
		fmt.Printf("  %s; %s was killed: what runs once answered again after %v\n", stage, n.name, time.Since(began).Round(10*time.Millisecond))
		if err := n.start(); err != nil {
			return err
		}
		if err := n.works(); err != nil {
			return err
		}
	}
	return nil
}

func (u *upgrade) version(program string) string {
	if program == u.older {
		return "previous"
	}
	return "present"
}

// stage returns the version of each replica as a text.
func (u *upgrade) stage() string {
	var all []string
	for i, n := range u.replicas {
		all = append(all, n.name+" "+u.version(u.runs[i]))
	}
	return strings.Join(all, ", ")
}

// listen serves the server that requires a login, in front of the server over HTTP.
func (u *upgrade) listen() (url string, err error) {
	ln, err := net.Listen("tcp", u.net.own()+":0")
	if err != nil {
		return "", err
	}
	base := "http://" + ln.Addr().String()
	// Tokens expire soon and can be refreshed once, so that the replicas must share the result.
	u.auth = authserver.New(base, authserver.ServerOptions{MCP: u.web.URL, Lifetime: 10 * time.Second})
	go func() { _ = http.Serve(ln, u.auth) }() // until the end of this process
	return base + "/mcp", nil
}

// prepare stores the config and the login of a cluster without replicas.
func (u *upgrade) prepare(c *cluster) error {
	u.cluster = c
	text, err := os.ReadFile(c.config)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &u.document); err != nil {
		return err
	}
	url, err := u.listen()
	if err != nil {
		return err
	}
	err = u.push(u.older, map[string]any{
		locked: map[string]any{"url": url, "description": "Echoes nonces to those who are logged in."},
		"fake": map[string]any{"command": u.fake, "args": []string{"-max-life", "1h"}, "place": "one", "tool_overrides": map[string]any{"big": map[string]int{"max_output_chars": 400}}},
	})
	if err != nil {
		return err
	}
	return u.login(u.older)
}

// push stores the config in the cluster with a program, after adding servers.
func (u *upgrade) push(program string, more map[string]any) error {
	entries, _ := u.document["mcp"].(map[string]any)
	maps.Copy(entries, more)
	text, err := json.Marshal(u.document)
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.config, text, 0o600); err != nil {
		return err
	}
	if out, err := u.command(program, "cluster", "push", u.config); err != nil {
		return fmt.Errorf("dynmcp cluster push: %w: %s", err, out)
	}
	return nil
}

// login logs in with a program.
func (u *upgrade) login(program string) error {
	return hosts.LogIn(u.commandOf(program, "login", locked, "--no-browser", "-c", u.config))
}

// check tests that the replicas are one service: ids and states of one replica are valid at the
// others, and all read what either program writes.
func (u *upgrade) check() error {
	checks := []struct {
		what string
		do   func() error
	}{
		{"calls", func() error { return u.everyServer(u.called) }},
		{"sessions", u.sessions},
		{"calls that wait for their host", u.parked},
		{"kept results", u.kept},
		{"configs and listings", u.pushed},
		{"dynmcp cluster", u.shown},
		{"logins", func() error { return u.login(u.runs[0]) }},
	}
	var errs []error
	for _, c := range checks {
		if err := c.do(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.what, err))
		}
	}
	return errors.Join(errs...)
}

// pairs calls do with each pair of replicas, until one fails.
func (u *upgrade) pairs(do func(ctx context.Context, at, elsewhere *web.Host) error) error {
	for i, n := range u.replicas {
		for j, m := range u.replicas {
			if i == j {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), bound)
			err := do(ctx, u.direct(i, u.client).Host, u.direct(j, u.client).Host)
			cancel()
			if err != nil {
				return fmt.Errorf("of %s (%s) at %s (%s): %w", n.name, u.version(u.runs[i]), m.name, u.version(u.runs[j]), err)
			}
		}
	}
	return nil
}

func (u *upgrade) sessions() error {
	return u.pairs(func(ctx context.Context, at, elsewhere *web.Host) error {
		at.Stateless, elsewhere.Stateless = false, false
		if err := at.Handshake(ctx); err != nil {
			return err
		}
		elsewhere.Join(at.Session())
		if err := (direct{elsewhere}).echo("one-0", fmt.Sprintf("probe-%d", u.probes.Add(1))); err != nil {
			return err
		}
		if err := stream(ctx, elsewhere); err != nil {
			return fmt.Errorf("its stream: %w", err)
		}
		return elsewhere.End(ctx)
	})
}

func (u *upgrade) parked() error {
	return u.pairs(func(ctx context.Context, at, elsewhere *web.Host) error {
		state, err := park(ctx, at)
		if err != nil {
			return err
		}
		messages, err := ask(ctx, elsewhere, state, "somebody")
		return said(messages, err, "somebody")
	})
}

var handle = regexp.MustCompile(`\\"result\\": \\"([A-Za-z0-9-]+)\\"`)

func (u *upgrade) kept() error {
	return u.pairs(func(ctx context.Context, at, elsewhere *web.Host) error {
		messages, err := at.Call(ctx, "1", "use_tool", `{"tool_name":"fake/big","tool_input":{"bytes":4000}}`)
		if err != nil {
			return err
		}
		kept := handle.FindSubmatch(bytes.Join(messages, nil))
		if kept == nil {
			return fmt.Errorf("no result is kept: %.500s", bytes.Join(messages, nil))
		}
		messages, err = elsewhere.Call(ctx, "1", "discover_tool", fmt.Sprintf(`{"result":%q}`, kept[1]))
		return said(messages, err, "xxxxxxxx")
	})
}

// said returns an error unless the answer of a call contains a text.
func said(messages [][]byte, err error, text string) error {
	if err == nil && !bytes.Contains(bytes.Join(messages, nil), []byte(text)) {
		err = fmt.Errorf("no %q in %.500s", text, bytes.Join(messages, nil))
	}
	return err
}

// pushed pushes a config with a new server with each program and calls the server through one replica.
// Then all replicas must list its tool.
func (u *upgrade) pushed() error {
	for _, program := range []string{u.older, u.dynmcp} {
		u.pushes++
		name := fmt.Sprintf("extra%d", u.pushes)
		err := u.push(program, map[string]any{name: map[string]any{"command": u.upstream, "args": []string{"-name", name, "-ledgers", u.ledgers()}, "place": "one", "description": "Echoes nonces."}})
		if err != nil {
			return fmt.Errorf("by the %s program: %w", u.version(program), err)
		}
		first := u.pushes % nodes
		if err := u.answers(first, server{name: name}); err != nil {
			return fmt.Errorf("pushed by the %s program: %w", u.version(program), err)
		}
		for i := range u.replicas {
			if err := u.lists(i, name); err != nil {
				return fmt.Errorf("%s, which was called by %s first, is not listed by %s: %w", name, u.replicas[first].name, u.replicas[i].name, err)
			}
		}
	}
	for _, program := range []string{u.older, u.dynmcp} {
		text, err := u.command(program, "cluster", "pull")
		if written, _ := os.ReadFile(u.config); err != nil || !strings.Contains(text, string(written)) {
			return fmt.Errorf("dynmcp cluster pull by the %s program: %w: %.300s", u.version(program), err, text)
		}
	}
	return nil
}

// lists waits until a replica finds the tool of a server.
func (u *upgrade) lists(replica int, name string) error {
	var err error
	for end := time.Now().Add(bound); time.Now().Before(end); pause() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		var messages [][]byte
		messages, err = u.direct(replica, u.client).Call(ctx, "1", "discover_tool", fmt.Sprintf(`{"query":"%s echo"}`, name))
		cancel()
		if err = said(messages, err, name+"/echo"); err == nil {
			return nil
		}
	}
	return err
}
