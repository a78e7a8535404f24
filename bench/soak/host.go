package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
)

// longLife keeps the fakes from ending by themselves in a long run.
const longLife = "6h"

// A host is a dynmcp with its servers.
type host struct {
	*hosts.Host
	url    string // if it serves over HTTP, without a path
	token  string // of our requests over HTTP, "" if unset
	marker string // NAME=VALUE in the environment of all its descendants
}

type answer = hosts.Answer

// An entry is a server of a config: a fakemcp with these arguments, unless fields has
// something else.
type entry struct {
	name   string
	args   []string
	fields map[string]any
}

// A setting has the options to start a dynmcp.
type setting struct {
	entries []entry
	more    map[string]any // keys of the config besides the servers
	level   string         // of its log; "" is error
	dir     string         // its working directory; "" is that of the soak
	env     []string       // in addition to ours
	keep    bool           // hosts.Host.Keep
	serves  bool           // over HTTP, not on its pipes
	path    string         // of an existing config; "" writes one
}

// config writes a config and returns its path.
func (s *soak) config(set setting) (string, error) {
	servers := map[string]map[string]any{}
	for _, e := range set.entries {
		fields := map[string]any{}
		if e.fields["url"] == nil {
			fields["command"] = s.fake
			fields["args"] = append([]string{"-max-life", longLife}, e.args...)
		}
		maps.Copy(fields, e.fields)
		servers[e.name] = fields
	}
	document := map[string]any{"mcp": servers, "startup_wait": "60s"}
	maps.Copy(document, set.more)
	text, err := json.Marshal(document)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, rand.Text()+".json")
	return path, os.WriteFile(path, text, 0o600)
}

// start runs dynmcp with these servers and waits until they have started.
func (s *soak) start(entries ...entry) (*host, error) { return s.launch(setting{entries: entries}) }

func (s *soak) launch(set setting) (*host, error) {
	path := set.path
	if path == "" {
		var err error
		if path, err = s.config(set); err != nil {
			return nil, err
		}
	}
	// It is a number of seconds, because scripts pass ${SOAK} as the time to sleep. This
	// identifies processes that have cleared their environment.
	marker := fmt.Sprintf("600.%018d", mathrand.Int64N(1e18))
	h := &host{marker: "SOAK=" + marker}
	level := cmp.Or(set.level, "error")
	var verb []string
	switch {
	case set.serves:
		verb, level = []string{"serve", "--http", "127.0.0.1:0"}, "info" // logs the address
	case s.recordings != "":
		verb = []string{"record", "-o", filepath.Join(s.recordings, "soak.jsonl")} // later recordings get a number
	}
	line := slices.Concat([]string{s.dynmcp}, verb, []string{"--log-level", level, "-c", path})
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(append(os.Environ(), h.marker), set.env...)
	cmd.Dir = cmp.Or(set.dir, s.dir)
	var err error
	if set.serves {
		if h.Host, err = hosts.Serve(cmd); err != nil {
			return nil, err
		}
		h.url = strings.TrimSuffix(h.URL, "/mcp")
		return h, nil
	}
	if h.Host, err = hosts.Start(cmd); err != nil {
		return nil, err
	}
	h.Keep = set.keep
	if _, err = h.Greet("soak"); err == nil {
		err = h.Ask("tools/list", struct{}{}, new(any)) // answered when all servers have started
	}
	if err != nil {
		h.End()
		return nil, err
	}
	return h, nil
}

// call calls a tool of a server.
func (h *host) call(id int, tool, input string) { h.ask(fmt.Sprint(id), "use_tool", use(tool, input)) }

// ask calls a tool of dynmcp itself. The id is JSON.
func (h *host) ask(id, tool, arguments string) {
	h.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments))
}

// use and load return arguments of use_tool and load_mcp.
func use(tool, input string) string {
	return fmt.Sprintf(`{"tool_name":%q,"tool_input":%s}`, tool, input)
}
func load(server string) string { return fmt.Sprintf(`{"mcp_name":%q}`, server) }
