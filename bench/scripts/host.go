package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/tiktoken-go/tokenizer"
	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

// A host runs dynmcp, and counts the tokens that its model would write and read.
type host struct {
	*hosts.Host
	codec tokenizer.Codec
	spent
}

type spent struct{ calls, turns, tokens int }

func start(dynmcp, config string) (*host, error) {
	cmd := exec.Command(dynmcp, "-c", config, "--log-level", "error")
	cmd.Stderr = os.Stderr
	running, err := hosts.Start(cmd)
	if err != nil {
		return nil, err
	}
	if _, err := running.Greet("bench"); err != nil {
		running.End()
		return nil, err
	}
	return &host{Host: running, codec: codec.NewO200kBase()}, nil
}

// call calls a tool of dynmcp and counts the tokens of the call and its result.
func (h *host) call(tool string, args any) (text string, failed bool, err error) {
	written, err := json.Marshal(map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return "", false, err
	}
	if text, failed, err = h.Tool(tool, args); err != nil {
		return "", false, err
	}
	for _, said := range []string{string(written), text} {
		n, err := h.codec.Count(said)
		if err != nil {
			return "", false, err
		}
		h.tokens += n
	}
	h.calls++
	return text, failed, nil
}

// script runs a script in one turn.
func (h *host) script(code string, args ...string) (string, error) {
	h.turns++
	text, failed, err := h.call("run_script", map[string]any{"code": code, "args": args})
	if failed {
		err = errors.New(text)
	}
	return text, err
}

type arguments = map[string]any

// use calls a tool once, in its own turn.
func (h *host) use(tool string, args arguments) (string, error) {
	texts, err := h.each(tool, []arguments{args})
	if err != nil {
		return "", err
	}
	return texts[0], nil
}

// each calls a tool several times in one turn. If a call fails, its text says so.
func (h *host) each(tool string, all []arguments) (texts []string, err error) {
	h.turns++
	for _, args := range all {
		text, _, err := h.call("use_tool", arguments{"tool_name": tool, "tool_input": args})
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

const (
	rounds   = 60
	inner    = 100
	mostMore = 300 * time.Microsecond // for a call in a script compared with use_tool
	mostNone = 5 * time.Millisecond   // for a script that calls nothing
)

// times measures calls inside and outside of scripts in turn.
func (h *host) times(judge bool, v *verdict.Verdict) error {
	timed := func(do func() error) (time.Duration, error) {
		began := time.Now()
		err := do()
		return time.Since(began), err
	}
	code := func(calls int) string {
		return fmt.Sprintf("for (let i = 0; i < %d; i++) await tools.fake.echo({word: 'w'}); return 1", calls)
	}
	var none, used, inside []time.Duration
	for range rounds {
		empty, err := timed(func() error { _, err := h.script("return [1, 2, 3].map(n => n * 2)"); return err })
		if err != nil {
			return err
		}
		base, err := timed(func() error { _, err := h.script(code(0)); return err })
		if err != nil {
			return err
		}
		all, err := timed(func() error { _, err := h.script(code(inner)); return err })
		if err != nil {
			return err
		}
		none, inside = append(none, empty), append(inside, (all-base)/inner)
		for range 10 {
			one, err := timed(func() error {
				_, _, err := h.Tool("use_tool", arguments{"tool_name": "fake/echo", "tool_input": arguments{"word": "w"}})
				return err
			})
			if err != nil {
				return err
			}
			used = append(used, one)
		}
	}
	for _, all := range [][]time.Duration{none, used, inside} {
		slices.Sort(all)
	}
	p50 := func(all []time.Duration) time.Duration { return all[len(all)/2].Round(time.Microsecond) }
	more := p50(inside) - p50(used)
	fmt.Printf("p50: a script that calls nothing %v, use_tool %v, a call inside a script %v (%v more)\n", p50(none), p50(used), p50(inside), more)
	if !judge {
		return nil
	}
	if p50(none) > mostNone {
		v.Fail("a script that calls nothing takes %v, at most %v are allowed", p50(none), mostNone)
	}
	if more > mostMore {
		v.Fail("a call inside a script takes %v more than use_tool, at most %v are allowed", more, mostMore)
	}
	return nil
}
