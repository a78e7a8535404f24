package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// storedServers and storedTools are how large the catalogue is that was stored.
const (
	storedServers = 100
	storedTools   = 50
)

// stored measures dynmcp where every server was listed in an earlier run and none runs:
// how long a host waits for its first tools/list, what a search takes and answers, and
// what the process weighs then.
func stored(bin binaries, rounds int) error {
	path, err := writeStored(bin)
	if err != nil {
		return err
	}
	warm := exec.Command(bin.dynmcp, "warm", "-c", path)
	if out, err := warm.CombinedOutput(); err != nil {
		return fmt.Errorf("warm: %w\n%s", err, out)
	}
	var starts, firsts []sample
	var searches []time.Duration
	var answers []int
	children := 0
	for range rounds {
		began := time.Now()
		p, err := startProcess([]string{bin.dynmcp, "--log-level", "error", "-c", path})
		if err != nil {
			return err
		}
		s, err := listAndSearch(p, began, &searches, &answers)
		children = max(children, p.children())
		p.stop()
		if err != nil {
			return err
		}
		starts = append(starts, s[0])
		firsts = append(firsts, s[1])
	}
	slices.Sort(searches)
	slices.Sort(answers)
	fmt.Printf("\n%d servers of %d tools, stored, none running\n", storedServers, storedTools)
	fmt.Printf("  start to tools/list %20s ms, RSS %s MB\n", spread(starts, func(s sample) float64 { return s.p50.Seconds() * 1e3 }), spread(starts, func(s sample) float64 { return s.rate }))
	fmt.Printf("  first search        %20s ms, RSS %s MB at rest after all searches\n", spread(firsts, func(s sample) float64 { return s.p50.Seconds() * 1e3 }), spread(firsts, func(s sample) float64 { return s.rate }))
	fmt.Printf("  search after that   p50 %.2f ms, p99 %.2f ms\n", searches[len(searches)/2].Seconds()*1e3, searches[len(searches)*99/100].Seconds()*1e3)
	fmt.Printf("  its answer, at four characters a token: median %d, worst %d tokens\n", answers[len(answers)/2]/4, answers[len(answers)-1]/4)
	fmt.Printf("  children            %d\n", children)
	return nil
}

// atRest is how long after the last search the memory is looked at: garbage is given
// back when it has been quiet for two seconds.
const atRest = 4 * time.Second

// listAndSearch returns what the first list and the first search took, with the memory
// after each, and adds what the others took.
func listAndSearch(p *process, began time.Time, searches *[]time.Duration, answers *[]int) (s [2]sample, err error) {
	if err := p.handshake(); err != nil {
		return s, err
	}
	if err := p.ask("tools/list", `{}`); err != nil {
		return s, err
	}
	s[0] = sample{p50: time.Since(began), rate: p.usage().rss}
	for i := range 200 {
		query := fmt.Sprintf("read the newest records of department %d", i%storedTools)
		began := time.Now()
		length, err := p.askFor("tools/call", fmt.Sprintf(`{"name":"discover_tool","arguments":{"query":%q}}`, query))
		if err != nil {
			return s, err
		}
		if took := time.Since(began); i == 0 {
			s[1].p50 = took
		} else {
			*searches = append(*searches, took)
		}
		*answers = append(*answers, length)
	}
	time.Sleep(atRest)
	s[1].rate = p.usage().rss
	return s, nil
}

// askFor is ask, and returns how many bytes the answer has.
func (p *process) askFor(method, params string) (int, error) {
	p.id++
	if _, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", p.id, method, params); err != nil {
		return 0, err
	}
	line, err := p.answer()
	if err == nil && bytes.Contains(line[:min(len(line), 200)], []byte(`"error"`)) {
		err = fmt.Errorf("%s: %.200s", method, line)
	}
	return len(line), err
}

// writeStored writes the config of servers that are all lazy.
func writeStored(bin binaries) (string, error) {
	servers := map[string]map[string]any{}
	for i := range storedServers {
		servers[fmt.Sprintf("server-%03d", i)] = map[string]any{
			"command": bin.upstream, "args": []string{"-tools", fmt.Sprint(storedTools)},
			"description": fmt.Sprintf("Server number %d, which answers what it is sent. Use it to measure.", i),
		}
	}
	text, err := json.Marshal(map[string]any{"mcp": servers})
	if err != nil {
		return "", err
	}
	path := filepath.Join(bin.dir, "mcp-stored.json")
	return path, os.WriteFile(path, text, 0o600)
}
