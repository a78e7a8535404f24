package skills

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// file is the text of a skill: more than results of tools may have, and with what looks like a secret.
var file = "# Review\n\ttoken: ghp_0123456789abcdefghijABCDEFGHIJ012345 \u00e9\r\n" + strings.Repeat("Read each line. ", 5000)

// A server has the skill review, and one of its own. It records its requests.
type server struct {
	name, url string

	mu  sync.Mutex
	got []string
}

func (s *server) skill(name string) string {
	return fmt.Sprintf(`{"uri":"skill://%s/SKILL.md","frontmatter":{"name":%q,"description":"How to review the code of %s."},"resources":[{"uri":"skill://%s/SKILL.md","digest":"sha256:%x"}]}`,
		name, name, s.name, name, sha256.Sum256([]byte(file)))
}

func (s *server) answer(m mcptest.Message) string {
	uri, _ := wire.Text(wire.Get(m.Params, "uri"))
	s.mu.Lock()
	s.got = append(s.got, strings.TrimSpace(m.Method+" "+uri))
	s.mu.Unlock()
	settings := `{}`
	if s.name == "b" {
		settings = `{"directoryRead":true}`
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"extensions":{%q:%s}},"serverInfo":{"name":%q,"version":"1"}}`, id, settings, s.name)
	case "tools/list":
		result = `{"tools":[{"name":"echo","description":"Says it again.","inputSchema":{"type":"object"}}]}`
	case "resources/list":
		result = `{"resources":[]}`
	case "resources/templates/list":
		result = `{"resourceTemplates":[]}`
	case "skills/list":
		if wire.Get(m.Params, "cursor") == nil {
			result = `{"skills":[` + s.skill("review") + `],"nextCursor":"2"}`
		} else {
			result = `{"skills":[` + s.skill("own-"+s.name) + `]}`
		}
	case "skills/get":
		result = `{"skill":` + s.skill("review") + `}`
	case "resources/directory/read":
		result = fmt.Sprintf(`{"resources":[{"uri":"%s/SKILL.md","name":"SKILL.md"}]}`, uri)
	case "resources/read":
		result = fmt.Sprintf(`{"contents":[{"uri":%q,"mimeType":"text/markdown","text":%s}]}`, uri, wire.Quote(file))
	}
	return result
}

func (s *server) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.got
	s.got = nil
	return all
}

// run serves two servers to a host, which asks by the returned function.
func run(t *testing.T, dir, load, capabilities string, servers []*server) (ask func(method, params string) wire.Message, end func()) {
	t.Helper()
	var entries []string
	for _, s := range servers {
		if s.url == "" {
			web := httptest.NewServer(mcptest.Answers(s.answer))
			t.Cleanup(web.Close)
			s.url = web.URL
		}
		entries = append(entries, fmt.Sprintf(`%q:{"url":%q,"load":%q,"description":"It has skills."}`, s.name, s.url, load))
	}
	path := mcptest.Config(t, fmt.Sprintf(`{"catalog":{"max_result_chars":1000},"mcp":{%s}}`, strings.Join(entries, ",")))
	cfg, err := schema.ReadFiles(t.Context(), []string{path}, schema.LoadOptions{}).Load()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Module.Start(module.Run{Config: cfg, Hosts: true})
	if err != nil {
		t.Fatal(err)
	}
	agg, err := aggregator.New(cfg, aggregator.Options{Version: "1", StoreDir: dir, Extensions: extension.Of([]module.Part{p})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ours, theirs := net.Pipe()
	var running sync.WaitGroup
	running.Go(func() {
		_ = agg.Serve(ctx, ours, ours)
		ours.Close()
	})
	end = sync.OnceFunc(func() {
		cancel()
		theirs.Close()
		agg.Close()
		running.Wait()
	})
	t.Cleanup(end)
	lines, last := bufio.NewScanner(theirs), 0
	lines.Buffer(nil, 1<<20)
	ask = func(method, params string) wire.Message {
		t.Helper()
		last++
		fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", last, method, params)
		for lines.Scan() {
			if m, _ := wire.Parse(slices.Clone(lines.Bytes())); m.Method == "" {
				return m
			}
		}
		t.Fatalf("no answer to %s: %v", method, lines.Err())
		panic("not reached")
	}
	m := ask("initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"host","version":"1"}}`, capabilities))
	if load == "lazy" {
		if got, want := string(wire.Get(m.Result, "capabilities", "extensions", id)), `{"directoryRead":true}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	fmt.Fprintf(theirs, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return ask, end
}

const knows = `{"extensions":{"` + id + `":{}}}`

func uris(m wire.Message, path ...string) (all []string) {
	for e := range wire.Elements(wire.Get(m.Result, path...)) {
		uri, _ := wire.Text(wire.Get(e, "uri"))
		all = append(all, uri)
	}
	return all
}

// Skills of several servers are listed in one list, and read from their servers byte for byte.
func TestSkillsOfServers(t *testing.T) {
	servers := []*server{{name: "a"}, {name: "b"}}
	ask, _ := run(t, "", "eager", knows, servers)
	ask("tools/list", `{}`)
	all := ask("skills/list", `{}`)
	want := []string{"skill://a+review/SKILL.md", "skill://a+own-a/SKILL.md", "skill://b+review/SKILL.md", "skill://b+own-b/SKILL.md"}
	if got := uris(all, "skills"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for e := range wire.Elements(wire.Get(all.Result, "skills")) {
		for r := range wire.Elements(wire.Get(e, "resources")) {
			if got := string(wire.Get(r, "digest")); got != fmt.Sprintf(`"sha256:%x"`, sha256.Sum256([]byte(file))) {
				t.Errorf("got %s", got)
			}
		}
	}
	for _, test := range []struct{ method, uri, server, own string }{
		{"resources/read", "skill://b+review/SKILL.md", "b", "skill://review/SKILL.md"},
		{"resources/read", "skill://a+review/more/x.md", "a", "skill://review/more/x.md"},
		{"resources/read", "skill://own-b/SKILL.md", "b", "skill://own-b/SKILL.md"},
		{"resources/read", "skill://own-a/more/x.md", "a", "skill://own-a/more/x.md"},
		{"skills/get", "skill://b+review/SKILL.md", "b", "skill://review/SKILL.md"},
		{"resources/directory/read", "skill://b+review", "b", "skill://review"},
		{"resources/read", "skill://review/SKILL.md", "", ""},
		{"resources/directory/read", "skill://c+review", "", ""},
	} {
		for _, s := range servers {
			s.take()
		}
		m := ask(test.method, fmt.Sprintf(`{"uri":%q}`, test.uri))
		for _, s := range servers {
			var expect []string
			if s.name == test.server {
				expect = []string{test.method + " " + test.own}
			}
			if got := s.take(); !slices.Equal(got, expect) {
				t.Errorf("%s %s: %s got %q, want %q", test.method, test.uri, s.name, got, expect)
			}
		}
		switch {
		case test.server == "":
			if m.Error == nil {
				t.Errorf("%s: got %s", test.uri, m.Result)
			}
		case test.method == "resources/read":
			for content := range wire.Elements(wire.Get(m.Result, "contents")) {
				if text, _ := wire.Text(wire.Get(content, "text")); text != file {
					t.Errorf("%s: %d bytes, want %d", test.uri, len(text), len(file))
				}
			}
		case test.method == "resources/directory/read":
			if got, want := uris(m, "resources"), []string{test.uri + "/SKILL.md"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

// A host that does not know skills finds and reads them with discover_tool. A later run knows those of
// servers that it has not started.
func TestFoundByDiscover(t *testing.T) {
	dir, servers := t.TempDir(), []*server{{name: "a"}, {name: "b"}}
	text := func(m wire.Message) (all string) {
		for item := range wire.Elements(wire.Get(m.Result, "content")) {
			text, _ := wire.Text(wire.Get(item, "text"))
			all += text
		}
		return all
	}
	const line = "- skill://b+review/SKILL.md: How to review the code of b."
	ask, end := run(t, dir, "eager", `{}`, servers)
	ask("tools/list", `{}`)
	if got := text(ask("tools/call", `{"name":"discover_tool","arguments":{"query":"review the code"}}`)); !strings.Contains(got, line) {
		t.Errorf("got %s", got)
	}
	if got := text(ask("tools/call", `{"name":"discover_tool","arguments":{"tool_name":"skill://b+review/SKILL.md"}}`)); got != file {
		t.Errorf("%d bytes, want %d", len(got), len(file))
	}
	if got := text(ask("tools/call", `{"name":"discover_tool","arguments":{"query":"say again"}}`)); strings.Contains(got, "skill://") {
		t.Errorf("got %s", got)
	}
	end()

	for _, s := range servers {
		s.take()
	}
	ask, end = run(t, dir, "lazy", `{}`, servers)
	if got := uris(ask("skills/list", `{}`), "skills"); len(got) != 4 || got[3] != "skill://b+own-b/SKILL.md" {
		t.Errorf("got %q", got)
	}
	if got := text(ask("tools/call", `{"name":"discover_tool","arguments":{"query":"review the code"}}`)); !strings.Contains(got, line) {
		t.Errorf("got %s", got)
	}
	for _, s := range servers {
		if got := s.take(); got != nil {
			t.Errorf("%s was asked %q", s.name, got)
		}
	}
	end()
	ask, _ = run(t, dir, "lazy", knows, servers)
	if got := text(ask("tools/call", `{"name":"discover_tool","arguments":{"query":"review the code"}}`)); strings.Contains(got, line) {
		t.Errorf("a host that knows skills got %s", got)
	}
}

// A list of skills starts no server of which nothing is known.
func TestAListStartsNoServer(t *testing.T) {
	servers := []*server{{name: "a"}, {name: "b"}}
	ask, _ := run(t, "", "lazy", knows, servers)
	if got := ask("skills/list", `{}`); string(got.Result) != `{"skills":[]}` {
		t.Errorf("got %s %s", got.Result, got.Error)
	}
	for _, s := range servers {
		if got := s.take(); got != nil {
			t.Errorf("%s got %q", s.name, got)
		}
	}
}
