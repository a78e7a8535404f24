package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// capacity measures the constants of docs/scale.md for one replica: memory per session, per open
// stream of a host and per server, and CPU per call.
func capacity(bin binaries, rounds int) error {
	fmt.Printf("\nwhat one replica carries\n")
	config, err := writeConfig(bin, 1, true)
	if err != nil {
		return err
	}
	var idle []float64
	for range rounds {
		p, _, err := startServer(serve(bin.dynmcp, config))
		if err != nil {
			return err
		}
		idle = append(idle, settled(p))
		p.terminate()
	}
	fmt.Printf("  %-44s %24s MB\n", "replica without sessions", spread(idle))
	for _, streams := range []bool{false, true} {
		what, few, many := "session that has called", 1000, 5000
		if streams {
			what, few, many = "of these, with its stream open", 500, 2500
		}
		var each []float64
		for range rounds {
			kb, err := perSession(bin, few, many, streams)
			if err != nil {
				return err
			}
			each = append(each, kb)
		}
		fmt.Printf("  %-44s %24s KB\n", what, spread(each))
	}
	var ours, guards []float64
	for range rounds {
		one, guard, err := perServer(bin, 10, 60)
		if err != nil {
			return err
		}
		ours, guards = append(ours, one), append(guards, guard)
	}
	fmt.Printf("  %-44s %24s KB\n", "server that runs, in dynmcp", spread(ours))
	fmt.Printf("  %-44s %24s KB\n", "and its guard (PSS)", spread(guards))
	for _, s := range []scenario{
		{"100 B", 100, text, 64, 20000, false, how{}},
		{"10 KB", 10 << 10, text, 64, 10000, false, how{}},
	} {
		for _, stateless := range []bool{false, true} {
			era := "handshake"
			v := variant{"dynmcp", serve(bin.dynmcp, config), "server-00/echo", overHTTP}
			if stateless {
				era, v.way = "2026-07-28", statelessHTTP
			}
			var all []sample
			for range rounds {
				got, err := runHTTP(v, s)
				if err != nil {
					return err
				}
				all = append(all, got)
			}
			fmt.Printf("  %-44s %24s µs of CPU, %s calls/s, others used %.0f %% of the machine\n", fmt.Sprintf("call, %s, %s", s, era),
				spread(values(all, cpu)), spread(values(all, rate)), 100*median(values(all, foreign)))
		}
	}
	return nil
}

// perSession returns by how many KB dynmcp grows per session between few and many, each of which has
// called once. With streams each holds a GET open.
func perSession(bin binaries, few, many int, streams bool) (kb float64, err error) {
	config, err := bin.write("sessions.json", `{"mcp": {"server": {"command": %q}}, "gateway": {"max_connections": 8192}}`, bin.upstream)
	if err != nil {
		return 0, err
	}
	p, url, err := startServer(serve(bin.dynmcp, config))
	if err != nil {
		return 0, err
	}
	defer p.terminate()
	client := web.NewClient()
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var open []io.Closer
	defer func() {
		for _, body := range open {
			err = errors.Join(err, body.Close())
		}
	}()
	grow := func(from, to int) (float64, error) {
		for i := from; i < to; i++ {
			h := web.NewHost(url, client)
			if err := h.Handshake(ctx); err != nil {
				return 0, err
			}
			if _, err := h.Call(ctx, "1", "use_tool", `{"tool_name":"server/echo","tool_input":{"text":"hello"}}`); err != nil {
				return 0, err
			}
			if !streams {
				continue
			}
			resp, err := h.Listen(ctx)
			if err != nil {
				return 0, err
			}
			if open = append(open, resp.Body); resp.StatusCode != http.StatusOK {
				return 0, fmt.Errorf("GET: %s", resp.Status)
			}
		}
		return settled(p), nil
	}
	before, err := grow(0, few)
	if err != nil {
		return 0, err
	}
	after, err := grow(few, many)
	return (after - before) * 1024 / float64(many-few), err
}

// settled returns the RSS of a process, in MB, when it has not changed for a second.
func settled(p *process) float64 {
	was := p.usage().rss
	for since := time.Now(); time.Since(since) < time.Second; time.Sleep(50 * time.Millisecond) {
		if now := p.usage().rss; now != was {
			since, was = time.Now(), now
		}
	}
	return was
}

// perServer returns by how many KB dynmcp and the guards grow per running server, between few and
// many.
func perServer(bin binaries, few, many int) (ours, guard float64, err error) {
	weigh := func(count int) (ours, guards float64, err error) {
		config, err := writeConfig(bin, count, false)
		if err != nil {
			return 0, 0, err
		}
		p, url, err := startServer(serve(bin.dynmcp, config))
		if err != nil {
			return 0, 0, err
		}
		defer p.terminate()
		client := web.NewClient()
		defer client.CloseIdleConnections()
		h := web.NewHost(url, client)
		if err := h.Handshake(context.Background()); err != nil {
			return 0, 0, err
		}
		for i := range count { // start and use each server
			if _, err := h.Call(context.Background(), "1", "use_tool", fmt.Sprintf(`{"tool_name":"server-%02d/echo","tool_input":{"text":"hello"}}`, i)); err != nil {
				return 0, 0, err
			}
		}
		return settled(p) * 1024, p.children().pss * 1024, nil
	}
	ours1, guards1, err := weigh(few)
	if err != nil {
		return 0, 0, err
	}
	ours2, guards2, err := weigh(many)
	return (ours2 - ours1) / float64(many-few), (guards2 - guards1) / float64(many-few), err
}
