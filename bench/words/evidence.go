package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
	"github.com/dynmcp/dynmcp/catalog/search"
)

// evidence is what the corpus says of pairs of words. A word of a name and a word that stands for it
// are counted once a server.
type evidence struct {
	texts map[[2]string]map[string]bool // word of a name, word of the text → servers
	asked map[[2]string]map[string]bool // word of a name, word of a query that the tool lacks → servers
	named map[string]float64            // word → labelled tools that have it in the name
	spoke map[string]float64            // word → labelled tools whose query has it
	both  map[[2]string]float64
	tools float64
}

// counts are the evidence of one pair.
type counts struct {
	texts, asked int
	lift         float64 // how many times more often than by chance the query has the one and the tool the other
}

// Least evidence: of so many servers by their texts, or of several queries, or of one query with a word that
// hardly any other has.
const (
	leastTexts = 3
	leastAsked = 2
	leastLift  = 3
	rareLift   = 20
)

func (c counts) enough() bool {
	return c.texts >= leastTexts || c.asked >= leastAsked && c.lift >= leastLift || c.asked > 0 && c.lift >= rareLift
}

func (c counts) plus(d counts) counts {
	return counts{c.texts + d.texts, c.asked + d.asked, max(c.lift, d.lift)}
}

func (c counts) String() string {
	return fmt.Sprintf("%d servers by texts, %d by queries (%.0f times chance)", c.texts, c.asked, c.lift)
}

func (e *evidence) of(p pair) (c counts) {
	for _, at := range [][2]string{{p.a, p.b}, {p.b, p.a}} {
		c.texts += len(e.texts[at])
		c.asked += len(e.asked[at])
		if n := e.both[at]; n > 0 {
			c.lift = max(c.lift, n*e.tools/(e.named[at[0]]*e.spoke[at[1]]))
		}
	}
	return c
}

// A tool is what is read of one.
type tool struct {
	Name, Description string
	server            string
}

// readEvidence reads all catalogues and labelled queries, of the servers of one half if it is not negative.
func readEvidence(dir string, half int) (*evidence, error) {
	e := &evidence{texts: map[[2]string]map[string]bool{}, asked: map[[2]string]map[string]bool{}, named: map[string]float64{}, spoke: map[string]float64{}, both: map[[2]string]float64{}}
	real, err := corpus.Read(dir)
	if err != nil {
		return nil, err
	}
	if _, err := e.read(real, half); err != nil {
		return nil, err
	}
	for _, set := range []string{"livemcpbench", "bfcl", "mcpproxy-go"} {
		if err := e.readSet(dir, set, half); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *evidence) readSet(dir, set string, half int) error {
	files, err := os.MkdirTemp("", "words")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	l, err := corpus.ReadLabelled(dir, set, files)
	if err != nil {
		return err
	}
	tools, err := e.read(l.Servers, half)
	if err != nil {
		return err
	}
	byID := map[string]tool{}
	for _, t := range tools {
		byID[l.IDs[t.server+"/"+t.Name]] = t
	}
	for _, q := range l.Questions {
		for _, ok := range q.Gold {
			if t, known := byID[ok[0]]; known {
				e.ask(q.Query, t)
			}
		}
	}
	return nil
}

// read reads the tools of servers, and counts the words of names beside those of descriptions.
func (e *evidence) read(servers []corpus.Server, half int) (tools []tool, err error) {
	for _, s := range servers {
		var listed struct{ Tools []tool }
		text, err := os.ReadFile(s.File)
		if err == nil {
			err = json.Unmarshal(text, &listed)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.File, err)
		}
		for _, t := range listed.Tools {
			t.server = s.Name
			if half >= 0 && halfOf(t) != half {
				continue
			}
			tools = append(tools, t)
			sentence, _, _ := strings.Cut(strings.SplitN(t.Description, "\n", 2)[0], ". ")
			name, says := terms(t.Name), terms(sentence)
			for _, w := range name {
				for _, v := range says {
					if !slices.Contains(name, v) && !slices.Contains(says, w) {
						add(e.texts, [2]string{w, v}, origin(t))
					}
				}
			}
		}
	}
	return tools, nil
}

// ask counts the words of a query that the tool lacks.
func (e *evidence) ask(query string, t tool) {
	name, all := terms(t.Name), terms(t.Name+" "+t.Description)
	e.tools++
	for _, w := range name {
		e.named[w]++
	}
	for _, v := range terms(query) {
		e.spoke[v]++
		if slices.Contains(all, v) {
			continue
		}
		for _, w := range name {
			e.both[[2]string{w, v}]++
			add(e.asked, [2]string{w, v}, origin(t))
		}
	}
}

func add(m map[[2]string]map[string]bool, at [2]string, server string) {
	if m[at] == nil {
		m[at] = map[string]bool{}
	}
	m[at][server] = true
}

// origin is the server of a tool. The functions of bfcl have none: their first word stands for it.
func origin(t tool) string {
	if t.server == "bfcl" {
		first, _, _ := strings.Cut(t.Name, ".")
		return "bfcl " + first
	}
	return t.server
}

func halfOf(t tool) int {
	h := fnv.New32a()
	h.Write([]byte(strings.TrimPrefix(origin(t), "bfcl ")))
	return int(h.Sum32() >> 7 & 1)
}

// terms returns the search terms of a text but stop words.
func terms(text string) []string { return slices.DeleteFunc(search.Terms(text), search.IsStopWord) }

// term returns the search term of a word.
func term(word string) string { return strings.Join(search.Terms(word), "") }
