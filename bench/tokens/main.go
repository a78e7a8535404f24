// Command tokens counts what a model reads through dynmcp, in tokens of o200k: what a
// host gets at the start of a session, and each answer of the three tools. It runs the
// real binary before real catalogues, which are served by this program in the place of
// their servers.
//
// Usage, from the root of the module:
//
//	go run ./bench/tokens                     the catalogues of $DYNMCP_CORPUS or ../shared/corpus
//	go run ./bench/tokens path/to/corpus      those of another folder
//
// A corpus has a file servers/NAME.json for each server, with what it answered: tools,
// prompts, resources, resourceTemplates, capabilities, serverInfo, instructions.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf16"

	"github.com/tiktoken-go/tokenizer"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		if err := serve(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	corpus := cmp.Or(os.Getenv("DYNMCP_CORPUS"), "../shared/corpus")
	if len(os.Args) > 1 {
		corpus = os.Args[1]
	}
	if err := run(corpus); err != nil {
		log.Fatal(err)
	}
}

// A server is one real catalogue.
type server struct {
	name, file   string
	words        string // what an operator would write of it
	tools        []tool
	instructions string
	list         string // its answer to tools/list
}

type tool struct{ Name, Description string }

// typical are ten servers that people have together.
var typical = []string{"github", "filesystem", "playwright", "slack", "notion", "sentry", "postgres", "context7", "kubernetes", "supabase"}

func run(corpus string) error {
	servers, err := readCorpus(corpus)
	if err != nil {
		return err
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return err
	}
	c := &counter{codec: codec}
	dir, err := os.MkdirTemp("", "dynmcp-tokens")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")); err != nil { // not what earlier runs listed
		return err
	}
	binary := filepath.Join(dir, "dynmcp")
	build := exec.Command("go", "build", "-o", binary, "./cmd/dynmcp")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	ten := slices.DeleteFunc(slices.Clone(servers), func(s server) bool { return !slices.Contains(typical, s.name) })

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "at the start\ttools/list, characters\ttokens\tinstructions, tokens\tdescription, characters\twords kept")
	for _, set := range [][]server{ten, servers} {
		if len(set) == 0 {
			continue
		}
		direct, instructions := "", ""
		for _, s := range set {
			direct += s.list
			instructions += s.instructions
		}
		fmt.Fprintf(w, "%d directly\t%d\t%d\t%d\t\t\n", len(set), units(direct), c.count(direct), c.count(instructions))
		for _, m := range modes {
			h, err := start(binary, dir, set, m.eager)
			if err != nil {
				return err
			}
			d := h.description
			fmt.Fprintf(w, "%d %s\t%d\t%d\t%d\t%d\t%s\n", len(set), m.name, units(h.list), c.count(h.list), c.count(h.instructions), units(d), kept(set, m.eager, d))
			h.end()
		}
	}
	w.Flush()

	fmt.Println()
	h, err := start(binary, dir, servers, func(int) bool { return false })
	if err != nil {
		return err
	}
	defer h.end()
	fmt.Fprintln(w, "answers, tokens\tn\tp50\tp95\tmax")
	for _, a := range answers(servers) {
		var counts []int
		for _, arguments := range a.calls {
			text, err := h.call(a.tool, arguments)
			if err != nil {
				return err
			}
			counts = append(counts, c.count(text))
		}
		slices.Sort(counts)
		n := len(counts)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", a.name, n, counts[n/2], counts[n*95/100], counts[n-1])
	}
	w.Flush()
	return c.err
}

// modes are which servers start by themselves: those have no description.
var modes = []struct {
	name  string
	eager func(i int) bool
}{
	{"lazy", func(int) bool { return false }},
	{"mixed", func(i int) bool { return i%8 == 3 || i == 0 }},
	{"eager", func(int) bool { return true }},
}

// An answer is one kind of call, and some of that kind.
type answer struct {
	name, tool string
	calls      []string
}

// answers are all that is asked, in an order in which every server has been loaded
// before its tools are asked about.
func answers(servers []server) []answer {
	load := answer{name: "load_mcp", tool: "load_mcp"}
	brief := answer{name: "discover_tool {tool_name}", tool: "discover_tool"}
	full := answer{name: "discover_tool {tool_name, full}", tool: "discover_tool"}
	list := answer{name: "discover_tool {server}", tool: "discover_tool"}
	query := answer{name: "discover_tool {query}", tool: "discover_tool"}
	unknown := answer{name: "use_tool of an unknown tool", tool: "use_tool"}
	for _, s := range servers {
		load.calls = append(load.calls, object("mcp_name", s.name))
		list.calls = append(list.calls, object("server", s.name))
		unknown.calls = append(unknown.calls, object("tool_name", s.name+"/no_such_tool"))
		for i, t := range s.tools {
			name := object("tool_name", s.name+"/"+t.Name)
			brief.calls = append(brief.calls, name)
			full.calls = append(full.calls, strings.TrimSuffix(name, "}")+`,"full":true}`)
			if sentence, _, _ := strings.Cut(t.Description, "."); i%8 == 0 && sentence != "" {
				query.calls = append(query.calls, object("query", sentence))
			}
		}
	}
	return []answer{load, brief, full, list, {"discover_tool {}", "discover_tool", []string{`{}`}}, query, unknown}
}

func object(name, value string) string {
	text, _ := json.Marshal(map[string]string{name: value}) // strings always encode
	return string(text)
}

// kept says how much of the operator's words a description shows.
func kept(set []server, eager func(int) bool, description string) string {
	all, shown := 0, 0
	for i, s := range set {
		if eager(i) {
			continue
		}
		all += len(s.words)
		for line := range strings.Lines(description) {
			if words, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "- "+s.name+": "); ok {
				shown += len(strings.TrimSuffix(words, "…"))
			}
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%d %%", 100*shown/all)
}

// A counter counts tokens and keeps the first error.
type counter struct {
	codec tokenizer.Codec
	err   error
}

func (c *counter) count(text string) int {
	n, err := c.codec.Count(text)
	c.err = cmp.Or(c.err, err)
	return n
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }
