package catalog

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/display"
)

// corpus is the directory of real catalogues, beside the repository.
const corpus = "../../shared/corpus"

// realServers returns the real catalogues, sorted by name.
func realServers(t testing.TB) ([]Server, []*Listing) {
	t.Helper()
	files, _ := filepath.Glob(corpus + "/servers/*.json")
	if len(files) == 0 {
		t.Skip("no real catalogues: " + corpus + "/servers is missing")
	}
	var servers []Server
	var listings []*Listing
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var l struct {
			Tools, Prompts, Resources, ResourceTemplates json.RawMessage
			Capabilities, ServerInfo                     json.RawMessage
			Instructions                                 string
		}
		if err := json.Unmarshal(data, &l); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, Server{Name: strings.TrimSuffix(filepath.Base(f), ".json")})
		listings = append(listings, &Listing{
			Tools: entriesOf(l.Tools), Prompts: entriesOf(l.Prompts), Resources: entriesOf(l.Resources), Templates: entriesOf(l.ResourceTemplates),
			Capabilities: l.Capabilities, Info: l.ServerInfo, Instructions: l.Instructions,
		})
	}
	return servers, listings
}

// entriesOf reads a list; an error in its place is an empty list.
func entriesOf(raw json.RawMessage) (list []json.RawMessage) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// realCatalog holds all real catalogues, loaded.
func realCatalog(t testing.TB) *Catalog {
	servers, listings := realServers(t)
	c := New()
	c.Declare(servers)
	for i, s := range servers {
		put(c, s.Name, listings[i])
	}
	return c
}

// question is a labelled query: a list of needed tools, each a list of
// acceptable ids.
type question struct {
	ID    string
	Query string
	Gold  [][]string
}

// labelled returns a catalogue of a retrieval set, the ids of its tools by
// exposed name, and its queries.
func labelled(t testing.TB, set string) (*View, map[string]string, []question) {
	t.Helper()
	dir := filepath.Join(corpus, "retrieval", set)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no labelled queries: " + dir + " is missing")
	}
	ids := map[string]string{}
	var servers []Server
	listings := map[string]*Listing{}
	seen := map[string]int{}
	readLines(t, dir+"/tools.jsonl", func(line []byte) {
		var tool struct{ ID, Server, Name string }
		if err := json.Unmarshal(line, &tool); err != nil {
			t.Fatal(err)
		}
		l := listings[tool.Server]
		if l == nil {
			l = &Listing{}
			listings[tool.Server] = l
			servers = append(servers, Server{Name: tool.Server})
		}
		// bfcl has several tools of one name: keep them apart.
		name := tool.Server + "/" + tool.Name
		raw := json.RawMessage(slices.Clone(line))
		if seen[name]++; seen[name] > 1 {
			suffix := strings.Repeat("\u00b7", seen[name]-1)
			raw = setText(raw, "name", tool.Name+suffix)
			name += suffix
		}
		ids[name] = tool.ID
		l.Tools = append(l.Tools, raw)
	})
	var questions []question
	readLines(t, dir+"/queries.jsonl", func(line []byte) {
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		questions = append(questions, q)
	})
	c := New()
	c.Declare(servers)
	for name, l := range listings {
		put(c, name, l)
	}
	return c.View(), ids, questions
}

func readLines(t testing.TB, path string, f func([]byte)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// figures are the quality of a search over a set of queries.
type figures struct{ r1, r3, r5, r10, r25, mrr float64 }

func measure(v *View, ids map[string]string, questions []question) figures {
	var sum figures
	for _, q := range questions {
		var got [][]string
		matches, _ := v.Find(q.Query, 50)
		for _, m := range matches {
			line := []string{ids[m.Tool.Name]}
			for _, t := range m.Also {
				line = append(line, ids[t.Name])
			}
			got = append(got, line)
		}
		shows := func(line, ok []string) bool {
			return slices.ContainsFunc(line, func(id string) bool { return slices.Contains(ok, id) })
		}
		recall := func(k int) float64 {
			hit := 0.0
			for _, ok := range q.Gold {
				if slices.ContainsFunc(got[:min(k, len(got))], func(line []string) bool { return shows(line, ok) }) {
					hit++
				}
			}
			return hit / float64(len(q.Gold))
		}
		sum.r1 += recall(1)
		sum.r3 += recall(3)
		sum.r5 += recall(5)
		sum.r10 += recall(10)
		sum.r25 += recall(25)
		for i, line := range got {
			if slices.ContainsFunc(q.Gold, func(ok []string) bool { return shows(line, ok) }) {
				sum.mrr += 1 / float64(i+1)
				break
			}
		}
	}
	n := float64(len(questions))
	return figures{sum.r1 / n, sum.r3 / n, sum.r5 / n, sum.r10 / n, sum.r25 / n, sum.mrr / n}
}

func TestRealCataloguesFitEveryLimit(t *testing.T) {
	t.Parallel()
	v := realCatalog(t).View()
	for _, limit := range []int{1, 50, 100, 200, 500, 1000, 2048, 4096, 10_000, 50_000, 200_000} {
		if n := display.Units(v.Texts().Describe(limit)); n > limit {
			t.Errorf("%d units under a limit of %d", n, limit)
		}
	}
	s := v.Texts().Describe(2048)
	for _, info := range v.Servers() {
		if !strings.Contains(s, "\n"+info.Name+": ") && !strings.Contains(s, "\n"+info.Name+" (") {
			t.Errorf("%s is not named in the default size", info.Name)
		}
	}
}

// TestRealServersAreWhole puts each real server through every answer.
func TestRealServersAreWhole(t *testing.T) {
	t.Parallel()
	servers, listings := realServers(t)
	for i, s := range servers {
		for _, s.Single = range []bool{false, true} {
			l := *listings[i]
			l.Tasks = HandshakeTasks // one of them has a tool that runs only as a task
			v := views(s, &l)[HandshakeTasks]
			if len(v.Tools()) != len(listings[i].Tools) || len(v.Warnings()) > 0 || len(v.Resources()) != len(listings[i].Resources) {
				t.Errorf("%s: %d of %d tools, warnings %q", s.Name, len(v.Tools()), len(listings[i].Tools), v.Warnings())
			}
			if n := display.Units(v.Texts().Describe(2048)); n > 2048 {
				t.Errorf("%s: %d units", s.Name, n)
			}
			if n := display.Units(v.Texts().Instructions(2048)); n > 2048 {
				t.Errorf("%s: %d units of instructions", s.Name, n)
			}
			if text := v.Texts().Loaded(s.Name); len(text) > pageBytes+3*namedBytes {
				t.Errorf("%s: load_mcp answers %d bytes", s.Name, len(text))
			}
			for _, tool := range v.Tools() {
				if s.Single && string(tool.Definition()) != string(tool.Raw) {
					t.Errorf("%s is not verbatim", tool.Name)
				}
				if !json.Valid(tool.Definition()) || tool.Summary == "" {
					t.Errorf("%s: summary %q, definition %s", tool.Name, tool.Summary, tool.Definition())
				}
			}
		}
	}
}

// TestNoRealSchemaIsABomb checks that the tools of the labelled sets keep the limits of
// schemas.
func TestNoRealSchemaIsABomb(t *testing.T) {
	t.Parallel()
	sets, _ := filepath.Glob(corpus + "/retrieval/*")
	if len(sets) == 0 {
		t.Skip("no labelled queries: " + corpus + "/retrieval is missing")
	}
	for _, set := range sets {
		v, _, _ := labelled(t, filepath.Base(set))
		for _, w := range v.Warnings() {
			if strings.Contains(w, "its schema") {
				t.Errorf("%s: %s", set, w)
			}
		}
	}
}

// TestRealNamesFindTheirTools searches for every tool by the words of its name.
func TestRealNamesFindTheirTools(t *testing.T) {
	t.Parallel()
	v := realCatalog(t).View()
	missed := 0
	for _, tool := range v.Tools() {
		query := strings.NewReplacer("_", " ", "-", " ", "/", " ").Replace(tool.Name)
		if !slices.Contains(found(v, query, 10), tool.Name) {
			missed++
		}
	}
	if share := float64(missed) / float64(len(v.Tools())); share > 0.02 {
		t.Errorf("%d of %d tools are not among the first ten of their own words", missed, len(v.Tools()))
	} else {
		t.Logf("%d of %d not among the first ten of their own words", missed, len(v.Tools()))
	}
}
