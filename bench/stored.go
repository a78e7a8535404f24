package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	path, queries, err := writeStored(bin)
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
		p, err := startProcess(onStdio(bin.dynmcp, path))
		if err != nil {
			return err
		}
		s, err := listAndSearch(p, began, queries, &searches, &answers)
		children = max(children, p.children().count)
		p.stop()
		if err != nil {
			return err
		}
		starts = append(starts, s[0])
		firsts = append(firsts, s[1])
	}
	slices.Sort(searches)
	slices.Sort(answers)
	fmt.Printf("\n%d servers of %d tools, stored, none running, %d searches\n", storedServers, storedTools, len(queries))
	fmt.Printf("  start to tools/list %20s ms, RSS %s MB\n", spread(values(starts, milliseconds)), spread(values(starts, rate)))
	fmt.Printf("  first search        %20s ms, RSS at most %s MB in all searches, %s MB at rest after them\n", spread(values(firsts, milliseconds)),
		spread(values(firsts, peak)), spread(values(firsts, rate)))
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
func listAndSearch(p *process, began time.Time, queries []string, searches *[]time.Duration, answers *[]int) (s [2]sample, err error) {
	if _, err := p.ask("tools/list", `{}`); err != nil {
		return s, err
	}
	s[0] = sample{p50: time.Since(began), rate: p.usage().rss}
	for i, query := range queries {
		began := time.Now()
		line, err := p.ask("tools/call", fmt.Sprintf(`{"name":"discover_tool","arguments":{"query":%q}}`, query))
		if err != nil {
			return s, err
		}
		took := time.Since(began)
		length, err := textLength(line)
		if err != nil {
			return s, err
		}
		if i == 0 {
			s[1].p50 = took
		} else {
			*searches = append(*searches, took)
		}
		*answers = append(*answers, length)
	}
	s[1].peak = p.usage().peak
	time.Sleep(atRest)
	s[1].rate = p.usage().rss
	return s, nil
}

// textLength returns how many bytes the text of an answer has.
func textLength(line []byte) (length int, err error) {
	var answer struct {
		Result struct{ Content []struct{ Text string } }
	}
	err = json.Unmarshal(line, &answer)
	for _, item := range answer.Result.Content {
		length += len(item.Text)
	}
	return length, err
}

// searchesOfARun is how many queries one process is asked.
const searchesOfARun = 200

// writeStored writes the config of servers that are all lazy, and what to ask for. Their
// tools are real ones where there is a corpus, see bench/tokens.
func writeStored(bin binaries) (path string, queries []string, err error) {
	real, err := realTools(cmp.Or(os.Getenv("DYNMCP_CORPUS"), "../shared/corpus"))
	if err != nil {
		return "", nil, err
	}
	for i := range searchesOfARun {
		query := fmt.Sprintf("read the newest records of department %d", i%storedTools)
		if real != nil {
			query = "a tool for this: " + strings.NewReplacer("_", " ", "-", " ").Replace(real[i*7%len(real)].name)
		}
		queries = append(queries, query)
	}
	servers := map[string]map[string]any{}
	for i := range storedServers {
		args := []string{"-tools", fmt.Sprint(storedTools)}
		if real != nil {
			args = []string{"-listing", filepath.Join(bin.dir, fmt.Sprintf("listing-%03d", i))}
			var tools [][]byte
			for j := range storedTools {
				tool := real[(i*storedTools+j)%len(real)]
				tool.members["name"], _ = json.Marshal(fmt.Sprintf("%s_%d", tool.name, j)) // one server has each name once
				text, _ := json.Marshal(tool.members)                                      // what was read can be written
				tools = append(tools, text)
			}
			if err := os.WriteFile(args[1], bytes.Join(tools, []byte(",")), 0o600); err != nil {
				return "", nil, err
			}
		}
		servers[fmt.Sprintf("server-%03d", i)] = map[string]any{
			"command": bin.upstream, "args": args,
			"description": fmt.Sprintf("Server number %d, which answers what it is sent. Use it to measure.", i),
		}
	}
	text, err := json.Marshal(map[string]any{"mcp": servers})
	if err != nil {
		return "", nil, err
	}
	path, err = bin.write("mcp-stored.json", "%s", text)
	return path, queries, err
}

type realTool struct {
	name    string
	members map[string]json.RawMessage
}

// realTools are those of all servers of a corpus, none if there is no corpus.
func realTools(corpus string) (all []realTool, err error) {
	files, err := filepath.Glob(filepath.Join(corpus, "servers", "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		var listed struct {
			Tools []map[string]json.RawMessage
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &listed)
		}
		for _, members := range listed.Tools {
			t := realTool{members: members}
			if err == nil {
				err = json.Unmarshal(members["name"], &t.name)
			}
			all = append(all, t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}
