package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
)

// startKinds are the configs that are started, and with which program: that without modules is the
// core.
var startKinds = []struct {
	name  string
	count int
	lazy  bool
	core  bool
}{
	{"0 servers", 0, true, false}, {"50 lazy", 50, true, false}, {"50 eager", 50, false, false},
	{"0, core", 0, true, true}, {"50 lazy, core", 50, true, true}, {"50 eager, core", 50, false, true},
}

// starts measures how long a host waits for its first tools/list, and what the
// process weighs then.
func starts(bin binaries, rounds int) error {
	results, err := startsOf(bin, rounds)
	if err != nil {
		return err
	}
	fmt.Printf("\nstart to tools/list\n  %-14s %24s %24s\n", "", "ms (least–greatest)", "RSS MB (least–greatest)")
	for _, k := range startKinds {
		fmt.Printf("  %-14s %24s %24s\n", k.name,
			spread(values(results[k.name], milliseconds)), spread(values(results[k.name], rate)))
	}
	return nil
}

func startsOf(bin binaries, rounds int) (map[string][]sample, error) {
	results := map[string][]sample{}
	core := filepath.Join(bin.dir, "dynmcp-core")
	if err := programs.Go(nil, "build", "-tags", "core", "-o", core, "./cmd/dynmcp"); err != nil {
		return nil, err
	}
	for range rounds {
		for _, k := range startKinds {
			path, err := writeConfig(bin, k.count, k.lazy)
			if err != nil {
				return nil, err
			}
			if err := os.RemoveAll(programs.StateHome(bin.dir)); err != nil { // every start is a first one
				return nil, err
			}
			program := bin.dynmcp
			if k.core {
				program = core
			}
			s, err := start(onStdio(program, path))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k.name, err)
			}
			results[k.name] = append(results[k.name], s)
		}
	}
	return results, nil
}

// start returns the time as p50 and the RSS as rate.
func start(argv []string) (sample, error) {
	began := time.Now()
	p, err := startProcess(argv)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	if _, err := p.ask("tools/list", `{}`); err != nil {
		return sample{}, err
	}
	return sample{p50: time.Since(began), rate: p.usage().rss}, nil
}

// writeConfig writes a config of so many servers. None at all is no config, so
// there is one that is switched off.
func writeConfig(bin binaries, count int, lazy bool) (string, error) {
	servers := map[string]map[string]any{"off": {"command": bin.upstream, "disabled": true}}
	for i := range count {
		s := map[string]any{"command": bin.upstream}
		if lazy {
			s["description"] = fmt.Sprintf("Server number %d, which answers what it is sent. Use it to measure.", i)
		}
		servers[fmt.Sprintf("server-%02d", i)] = s
	}
	text, err := json.Marshal(map[string]any{"mcp": servers})
	if err != nil {
		return "", err
	}
	return bin.write(fmt.Sprintf("mcp-%d-%t.json", count, lazy), "%s", text)
}
