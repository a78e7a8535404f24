package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
	"github.com/dynmcp/dynmcp/catalog/search"
)

// bench is one run.
type bench struct {
	dir, program string
	servers      []corpus.Server   // the real ones
	more         *corpus.Labelled  // livemcpbench
	written      map[string]string // descriptions of servers by hand
	verdict      verdict.Verdict
}

// newBench reads the corpus. Files are written to dir.
func newBench(dir, program string) (b *bench, err error) {
	b = &bench{dir: dir, program: program, written: map[string]string{}}
	if b.servers, err = corpus.Read(corpus.Dir()); err != nil {
		return nil, err
	}
	if b.more, err = corpus.ReadLabelled(corpus.Dir(), "livemcpbench", dir); err != nil {
		return nil, err
	}
	text, err := os.ReadFile("catalog/describe/testdata/written.txt")
	for line := range strings.Lines(string(text)) {
		if name, words, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
			b.written[name] = words
		}
	}
	return b, err
}

// most judges that a figure is at most an aim, least that it is at least one.
func (b *bench) most(what string, got, aim int) {
	fmt.Printf("%-62s %6d   at most %d\n", what, got, aim)
	if got > aim {
		b.verdict.Fail("%s: %d, must be %d at most", what, got, aim)
	}
}

func (b *bench) least(what string, got, aim float64) {
	fmt.Printf("%-62s %6.3f   at least %.3f\n", what, got, aim)
	if got < aim {
		b.verdict.Fail("%s: %.3f, must be %.3f at least", what, got, aim)
	}
}

var o200k = codec.NewO200kBase()

// count counts the tokens of texts.
func count(texts ...string) (sum int) {
	for _, text := range texts {
		n, err := o200k.Count(text)
		if err != nil {
			panic(err) // it fails for no text
		}
		sum += n
	}
	return sum
}

func (b *bench) measure() error {
	for _, part := range []func() error{b.starts, b.tasks, b.steps, b.single, b.descriptions} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// typical are ten servers that people use together.
var typical = []string{"github", "filesystem", "playwright", "slack", "notion", "sentry", "postgres", "context7", "kubernetes", "supabase"}

// some returns 10, 38 or 100 servers.
func (b *bench) some(n int) []corpus.Server {
	if n == len(typical) {
		return slices.DeleteFunc(slices.Clone(b.servers), func(s corpus.Server) bool { return !slices.Contains(typical, s.Name) })
	}
	all := slices.Clone(b.servers)
	for _, s := range b.more.Servers {
		if !slices.ContainsFunc(all, func(other corpus.Server) bool { return other.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all[:n]
}

// running starts dynmcp with servers, calls use with it, and ends it.
func (b *bench) running(name string, servers []corpus.Server, written map[string]string, use func(*host) error) error {
	file, err := b.config(name, servers, written)
	if err != nil {
		return err
	}
	return b.talking(file, anyHost, use)
}

// Names of hosts: of an unknown one, and of one that keeps its first list.
const (
	anyHost = "finding"
	keeping = "claude-code"
)

// talking starts dynmcp with a config for a host with the name client, calls use with it, and ends it.
func (b *bench) talking(config, client string, use func(*host) error) error {
	h, err := start(b.program, config, client)
	if err != nil {
		return err
	}
	defer h.End()
	if err := use(h); err != nil {
		return err
	}
	return h.Stop()
}

// starts counts the tokens at the start of a session.
func (b *bench) starts() error {
	for _, set := range []struct{ servers, most int }{{10, 750}, {38, 950}, {100, 1400}} {
		servers := b.some(set.servers)
		file, err := b.config(fmt.Sprint("start", set.servers), servers, b.written)
		if err != nil {
			return err
		}
		for _, client := range []string{anyHost, keeping} {
			err := b.talking(file, client, func(h *host) error {
				read, text, err := h.start()
				if err != nil {
					return err
				}
				b.most(fmt.Sprintf("%d servers: tokens at the start of %s", set.servers, client), read, set.most)
				said := 0
				for _, words := range wordsShown(text) { // by names that import may have changed
					if words != "" {
						said++
					}
				}
				b.least(fmt.Sprintf("%d servers: share that is shown with words to %s", set.servers, client), float64(said)/float64(len(servers)), 1)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// start returns the texts about servers at the start of a session, and the tokens of all that a model
// reads then.
func (h *host) start() (tokens int, text string, err error) {
	tools, err := h.tools()
	if err != nil {
		return 0, "", err
	}
	tokens = count(h.instructions)
	for _, t := range tools {
		definition, err := json.Marshal(t)
		if err != nil {
			return 0, "", err
		}
		tokens += count(string(definition))
		text += t.Description + "\n"
	}
	return tokens, text + h.instructions, nil
}

// wordsShown returns the description of each server in a text.
func wordsShown(text string) map[string]string {
	shown := map[string]string{}
	for line := range strings.Lines(text) {
		if line, ok := strings.CutPrefix(line, "- "); ok {
			name, words, _ := strings.Cut(strings.TrimSpace(line), ":")
			shown[name] = words
		}
	}
	return shown
}

// tasks searches for all steps of a task at once, to call the tools that the answer defines. A step
// whose tool is not defined there needs a third round trip.
func (b *bench) tasks() error {
	tasks, err := readTasks("bench/finding/tasks.txt")
	if err != nil {
		return err
	}
	return b.running("tasks", b.servers, b.written, func(h *host) error {
		two := 0
		var sizes []int
		for _, task := range tasks {
			answer, err := h.discover(map[string]any{"query": task.queries})
			if err != nil {
				return err
			}
			sizes = append(sizes, count(answer))
			missing := ""
			for i, tools := range task.tools {
				if !slices.ContainsFunc(tools, func(name string) bool { return strings.Contains(answer, "\nName: "+name+"\n") }) {
					missing = task.queries[i]
				}
			}
			if missing == "" {
				two++
			} else {
				fmt.Printf("  a third round trip for: %s\n", missing)
			}
		}
		slices.Sort(sizes)
		b.least(fmt.Sprintf("%d tasks: tasks in two round trips", len(tasks)), float64(two), 28)
		b.most("tokens of an answer, median", sizes[len(sizes)/2], 500)
		b.most("tokens of an answer, worst", sizes[len(sizes)-1], 1500)
		return nil
	})
}

// steps searches for the steps of labelled tasks, and counts the needed tools among the first five of
// each step.
func (b *bench) steps() error {
	steps, err := readSteps("catalog/testdata/steps.txt")
	if err != nil {
		return err
	}
	return b.running("steps", b.more.Servers, nil, func(h *host) error {
		sum, named := 0.0, 0.0
		for _, q := range b.more.Questions {
			queries := steps[q.ID[:8]]
			if len(queries) == 0 {
				return fmt.Errorf("no steps of %s", q.ID)
			}
			answer, err := h.discover(map[string]any{"query": queries, "limit": 5})
			if err != nil {
				return err
			}
			lines := onLines(b.more, answer)
			sum += q.Recall(func(id string) bool { return lines[id] })
			if answer, err = h.discover(map[string]any{"query": queries}); err != nil {
				return err
			}
			named += q.Recall(func(id string) bool {
				return lines[id] || strings.Contains(answer, id[strings.LastIndexByte(id, '/')+1:])
			})
		}
		n := float64(len(b.more.Questions))
		b.least("livemcpbench: needed tools in the first five by steps", sum/n, .72)
		b.least("livemcpbench: needed tools named in the answer", named/n, .75)
		return nil
	})
}

// single runs sets of queries that need one tool each.
func (b *bench) single() error {
	for _, set := range []struct {
		name string
		five float64
	}{{"bfcl", .919}, {"mcpproxy-go", .886}} {
		l, err := corpus.ReadLabelled(corpus.Dir(), set.name, b.dir)
		if err != nil {
			return err
		}
		err = b.running(set.name, l.Servers, nil, func(h *host) error {
			sum := 0.0
			for _, q := range l.Questions {
				answer, err := h.discover(map[string]any{"query": q.Query, "limit": 5})
				if err != nil {
					return err
				}
				lines := onLines(l, answer)
				sum += q.Recall(func(id string) bool { return lines[id] })
			}
			b.least(set.name+": needed tools in the first five", sum/float64(len(l.Questions)), set.five)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// descriptions measures for how many tasks the right server is among the best three by its
// description.
func (b *bench) descriptions() error {
	tasks, err := readTasks("catalog/describe/testdata/tasks.txt")
	if err != nil {
		return err
	}
	for _, by := range []struct {
		name         string
		written      map[string]string
		shown, whole float64
	}{{"by hand", b.written, 0, 0}, {"by dynmcp", nil, .68, .88}} {
		file, err := b.config("described", b.servers, by.written)
		if err != nil {
			return err
		}
		var tools []definition
		err = b.talking(file, anyHost, func(h *host) (err error) {
			tools, err = h.tools()
			return err
		})
		if err != nil {
			return err
		}
		whole, err := b.wordsWhole(file)
		if err != nil {
			return err
		}
		b.least("right server among three, descriptions "+by.name+", as shown", amongThree(wordsShown(tools[0].Description), tasks), by.shown)
		b.least("right server among three, descriptions "+by.name+", whole", amongThree(whole, tasks), by.whole)
	}
	return nil
}

// amongThree returns the share of tasks with a right server among the best three.
func amongThree(shown map[string]string, tasks []task) float64 {
	var names []string
	for name := range shown {
		names = append(names, name)
	}
	slices.Sort(names)
	hits := 0
	for _, t := range tasks {
		best := search.Rank(t.words, names, func(name string) map[string]float64 {
			counts := map[string]float64{}
			search.Words(name+" "+shown[name], func(w string) { counts[w]++ })
			return counts
		})
		if slices.ContainsFunc(best[:min(len(best), 3)], func(name string) bool { return slices.Contains(t.tools[0], name) }) {
			hits++
		}
	}
	return float64(hits) / float64(len(tasks))
}
