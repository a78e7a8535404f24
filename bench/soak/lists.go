package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	goodServers = 3
	goodTools   = 20 // of each, in addition to those of every fakemcp
)

// malformed has entries, by kind, that make typed hosts refuse a whole list. The parts
// that may be shown say "malformed".
var malformed = map[string][]string{
	"tool": {
		`{"name":5,"description":"malformed","inputSchema":{"type":"object"}}`,
		`{"name":"malformed_1","inputSchema":null}`,
		`{"name":"malformed_2","description":5,"inputSchema":{"type":"object"}}`,
		`{"name":"malformed_3","inputSchema":{"type":"array"}}`,
		`{"name":"malformed_4","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"}}`,
		`{"description":"malformed"}`,
	},
	"prompt": {
		`{"name":"malformed_1","arguments":"x"}`,
		`{"name":"malformed_2","arguments":[{"name":7}]}`,
		`{"name":null,"description":"malformed"}`,
	},
	"resource": {
		`{"uri":7,"name":"malformed"}`,
		`{"uri":"fake://malformed/1"}`,
		`{"uri":"fake://malformed/2","name":"x","size":"big"}`,
		`{"uri":"fake://malformed/3","name":"x","annotations":{"audience":["nobody"]}}`,
	},
}

// kinds are the lists that are read, and the members that identify their entries.
var kinds = []struct{ method, list, key string }{
	{"tools/list", "tools", "name"},
	{"prompts/list", "prompts", "name"},
	{"resources/list", "resources", "uri"},
	{"resources/templates/list", "resourceTemplates", "uriTemplate"},
}

// lists reads the lists n times in turn. Meanwhile a server adds malformed entries to its
// lists and announces each, and reloads of the config replace the server.
func (s *soak) lists(n int) error {
	began := time.Now()
	l := &lists{soak: s, path: filepath.Join(s.dir, "lists.json")}
	if err := l.write(); err != nil {
		return err
	}
	var err error
	if l.host, err = s.launch(setting{path: l.path}); err != nil {
		return err
	}
	defer l.host.End()
	want := make([]map[string]bool, len(kinds)) // of the good servers
	for k := range kinds {
		got, err := l.read(k)
		if err != nil {
			return err
		}
		want[k] = map[string]bool{}
		for key, count := range got {
			if strings.Contains(key, "good-") {
				want[k][key] = true
				l.twice += count - 1
			}
		}
	}
	if tools := len(want[0]); tools < goodServers*goodTools {
		return fmt.Errorf("%d tools of good servers, want %d and more", tools, goodServers*goodTools)
	}
	for i := range n {
		if err := l.stir(i); err != nil {
			return err
		}
		k := i % len(kinds)
		got, err := l.read(k)
		if err != nil {
			return err
		}
		for key := range want[k] {
			if got[key] == 0 {
				l.lost++
				fmt.Printf("  read %d, %s: %s is missing\n", i, kinds[k].method, key)
			}
		}
		for key, count := range got {
			if strings.Contains(key, "good-") {
				l.twice += count - 1
			}
		}
	}
	if err := l.host.Stop(); err != nil {
		return err
	}
	starts := count(l.ledger(), "start ")
	fmt.Printf("lists: %d reads in %v of %d entries of good servers, while another announced %d changes (%d calls for that failed), and %d reloads of the config started it %d times: %d entries lost, %d twice, %d malformed ones shown\n",
		l.reads, rounded(time.Since(began)), len(want[0])+len(want[1])+len(want[2])+len(want[3]), l.announced, l.refused, l.reloads, starts, l.lost, l.twice, l.shown)
	if l.announced == 0 || l.reloads > 0 && starts < 2 {
		s.Fail("nothing was announced, or nothing reloaded")
	}
	s.Must("entries of good servers lost", l.lost, 0)
	s.Must("entries that are there twice", l.twice, 0)
	s.Must("malformed entries shown", l.shown, 0)
	s.Must("processes left", l.host.remaining(), 0)
	return nil
}

// A lists is a dynmcp whose lists are read.
type lists struct {
	*soak
	path string // of the config
	host *host

	asked     int // calls to the bad server
	announced int // of which succeeded
	refused   int // of which failed
	reloads   int
	reads     int
	lost      int // entries of good servers
	twice     int
	shown     int // reads with malformed entries
}

// write writes the config. Each time, the bad server has other arguments and other
// malformed entries.
func (l *lists) write() error {
	servers := map[string]any{}
	for i := range goodServers {
		name := fmt.Sprintf("good-%d", i)
		servers[name] = map[string]any{"command": l.fake, "args": []string{"-name", name, "-max-life", longLife, "-tools", fmt.Sprint(goodTools)}}
	}
	args := []string{"-name", "bad", "-max-life", longLife, "-ledger", l.ledger(), "-fault", "bad-entry"}
	for _, kind := range []string{"tool", "prompt", "resource"} {
		for i, e := range malformed[kind] {
			if l.reloads%2 == 0 || i%2 == 0 {
				args = append(args, "-"+kind, e)
			}
		}
	}
	servers["bad"] = map[string]any{"command": l.fake, "args": append(args, "-instructions", fmt.Sprint(l.reloads))}
	text, err := json.Marshal(map[string]any{"mcp": servers, "expose": []string{"discover", "direct"}, "startup_wait": "60s"})
	if err != nil {
		return err
	}
	// dynmcp would refuse a partly written file and keep the old config.
	next := l.path + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, l.path)
}

// ledger returns the file in which the bad server records its starts.
func (l *lists) ledger() string { return l.path + ".ledger" }

// stir starts a change of the lists before read i, and does not wait for it.
func (l *lists) stir(i int) error {
	if i%20 == 19 {
		l.reloads++
		if err := l.write(); err != nil {
			return err
		}
		return l.host.Cmd.Process.Signal(syscall.SIGHUP)
	}
	kind := []string{"tool", "prompt", "resource"}[l.asked%3]
	e := malformed[kind][l.asked%len(malformed[kind])]
	l.asked++
	l.host.ask(fmt.Sprint(l.asked), "use_tool", use("bad/add_"+kind, `{"entry":`+e+`}`))
	return nil
}

// read reads a list and counts its entries by name.
func (l *lists) read(k int) (map[string]int, error) {
	l.reads++
	id := fmt.Sprintf("read %d", l.reads)
	l.host.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q}`, id, kinds[k].method))
	a, err := l.host.Await(id, func(a answer) error {
		if a.Result.IsError || len(a.Result.Content) == 0 {
			l.refused++
		} else {
			l.announced++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var line struct{ Result map[string]json.RawMessage }
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.Line), &line); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line.Result[kinds[k].list], &entries); err != nil {
		return nil, fmt.Errorf("%w: %.300s", err, a.Line)
	}
	if slices.ContainsFunc(entries, isMalformed) {
		l.shown++
		fmt.Printf("  %s: a malformed entry is shown\n", id)
	}
	got := map[string]int{}
	for _, e := range entries {
		var key string
		if err := json.Unmarshal(e[kinds[k].key], &key); err != nil {
			return nil, fmt.Errorf("%s: an entry's %s is %.100s", id, kinds[k].key, e[kinds[k].key])
		}
		got[key]++
	}
	return got, nil
}

// isMalformed reports whether an entry is one of malformed. It does not search whole
// descriptions, because those of dynmcp's own tools may mention them.
func isMalformed(e map[string]json.RawMessage) bool {
	return strings.Contains(string(e["name"]), "malformed") || strings.Contains(string(e["uri"]), "malformed") ||
		string(e["description"]) == `"malformed"`
}
