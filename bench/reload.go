package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/web"
)

const (
	manyTools = 30_000
	window    = 2 * time.Second // how long calls are made with and without reloads
)

// reloads measures calls to one server while the list of another, of 30,000 tools,
// is fetched and indexed again and again, and without that. Both are windows of
// one process, in turn.
func reloads(bin binaries, rounds int) error {
	servers := map[string]any{
		"upstream": map[string]any{"command": bin.upstream},
		"big":      map[string]any{"command": bin.upstream, "args": []string{"-tools", fmt.Sprint(manyTools)}},
	}
	text, err := json.Marshal(map[string]any{"mcp": servers})
	if err != nil {
		return err
	}
	config, err := bin.write("reload.json", "%s", text)
	if err != nil {
		return err
	}
	fmt.Printf("\n100 B both ways, 1 in flight, beside reloads of %d tools and without, in µs\n", manyTools)
	fmt.Printf("  %-8s %20s %20s %20s %12s %20s %10s\n", "", "p50 (least–greatest)", "p99", "p99 beside", "beside/p99", "longest beside", "reloads/s")
	for _, v := range append([]variant{{name: "dynmcp", argv: []string{bin.dynmcp}}}, bin.also...) {
		var without, beside []sample
		reloaded := 0
		for range rounds {
			w, b, n, err := reloadRound(onStdio(v.argv[0], config))
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			without, beside, reloaded = append(without, w), append(beside, b), reloaded+n
		}
		fmt.Printf("  %-8s %20s %20s %20s %12.2f %20s %10.1f\n", v.name,
			spread(values(without, p50)), spread(values(without, p99)), spread(values(beside, p99)), ratio(beside, without, p99),
			spread(values(beside, func(s sample) float64 { return s.longest.Seconds() * 1e6 })),
			float64(reloaded)/float64(rounds)/window.Seconds())
	}
	return nil
}

// reloadRound measures one window without reloads and one with them, and counts
// those.
func reloadRound(argv []string) (without, beside sample, reloaded int, err error) {
	p, err := startProcess(argv)
	if err != nil {
		return sample{}, sample{}, 0, err
	}
	defer p.stop()
	if _, err := p.ask("tools/list", `{}`); err != nil {
		return sample{}, sample{}, 0, err
	}
	calls := newCalls("upstream/echo", "", scenario{size: 100, content: text})
	if _, err := p.callFor(calls, window/4); err != nil {
		return sample{}, sample{}, 0, err
	}
	if without, err = p.callFor(calls, window); err != nil {
		return sample{}, sample{}, 0, err
	}
	toggle := func() (int, error) {
		p.id++
		fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"big/tool_00000","tool_input":{"query":"x"}}}}`+"\n", p.id)
		line, err := p.answer()
		fetched := web.Number(line, `"text":"`)
		if err == nil && fetched < 0 {
			err = fmt.Errorf("a wrong answer: %.200s", line)
		}
		return fetched, err
	}
	if _, err := toggle(); err != nil {
		return sample{}, sample{}, 0, err
	}
	if beside, err = p.callFor(calls, window); err != nil {
		return sample{}, sample{}, 0, err
	}
	reloaded, err = toggle()
	return without, beside, reloaded, err
}

// callFor makes one call after the other for so long.
func (p *process) callFor(calls *calls, d time.Duration) (sample, error) {
	p.id = max(p.id, firstID)
	var took []time.Duration
	for began := time.Now(); time.Since(began) < d; {
		p.id++
		sent := time.Now()
		if _, err := p.in.Write(calls.number(p.id)); err != nil {
			return sample{}, err
		}
		line, err := p.answer()
		if err != nil {
			return sample{}, err
		}
		if id, text := answered(line); id != p.id || text != p.id {
			return sample{}, fmt.Errorf("a wrong answer: %.200s", line)
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	n := len(took)
	return sample{p50: took[n/2], p99: took[n*99/100], longest: took[n-1], rate: float64(n) / d.Seconds()}, nil
}
