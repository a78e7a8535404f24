package main

import (
	"fmt"
	"os"
	"path/filepath"
)

var httpScenarios = []scenario{
	{"HTTP, 100 B", 100, text, 1, 3000, true},
	{"HTTP, 10 KB", 10 << 10, text, 1, 2000, true},
	{"HTTP, 1 MB", 1 << 20, text, 1, 100, true},
	{"HTTP, 100 B", 100, text, 64, 12000, true},
	{"HTTP, 10 KB", 10 << 10, text, 64, 8000, true},
	{"HTTP, 1 MB", 1 << 20, text, 64, 256, true},
}

// callingHTTP measures the scenarios whose name holds only, from pipes to an
// upstream over HTTP. The pump is then httppump.
func callingHTTP(bin binaries, only string, rounds int) error {
	upstream, url, err := startServer([]string{bin.httpupstream})
	if err != nil {
		return err
	}
	defer upstream.terminate()
	config := filepath.Join(bin.dir, "http.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"mcp": {"upstream": {"url": %q}}}`, url), 0o600); err != nil {
		return err
	}
	own := func(path string) []string { return []string{path, "--log-level", "error", "-c", config} }
	variants := []variant{{"pump", []string{bin.httppump, url}, "upstream/echo", onPipes}, {"dynmcp", own(bin.dynmcp), "upstream/echo", onPipes}}
	for _, v := range bin.also {
		variants = append(variants, variant{v.name, own(v.argv[0]), "upstream/echo", onPipes})
	}
	for _, s := range httpScenarios {
		if s.is(only) {
			if err := measure(variants, s, rounds); err != nil {
				return err
			}
		}
	}
	return nil
}
