package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/theory/jsonpath/spec"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// DescribeBrowser returns the text for mcp_discover's description: how many tools
// there are to query, and which servers may bring more. It has at most maxChars UTF-16
// units, unless that is 0 or less.
func (v *View) DescribeBrowser(maxChars int) string {
	return v.withUnlisted(fmt.Sprintf("Discover available tools using JSONPath. %s available.", plural(v.countTools(), "tool"))+
		` The query runs over {"tools": [the definitions], "servers": [{"name", "description", "state", "tools"}]}, such as $.tools[?(@.name contains 'file')].`, Browser, maxChars)
}

// browseExample is what a wrong query is answered with.
const browseExample = `For example: $.tools[?(@.name contains 'file')].name, $.tools[0:5], $.servers[*].name`

// Browse answers a JSONPath query over what is known: the JSON array of what matches,
// or the value of a query that names one. note, which may be empty, is to be said
// beside it: that not all is there. An error is for the model to read. read is called
// with each tool whose input schema is in the answer. The answer has at most maxBytes, 0
// meaning 16 KB, which models read well.
func (v *View) Browse(query string, maxBytes int, read func(*Tool)) (answer json.RawMessage, note string, err error) {
	q, matches, err := v.query(query)
	if err != nil {
		return nil, "", err
	}
	if len(matches) == 0 && !v.Complete() {
		return json.RawMessage(`[]`), "Nothing of what is known matches. " + strings.TrimSpace(Browser.load(v)+" "+v.notListed(" ")), nil
	}
	answer, shown, note, err := bounded(q, matches, cmp.Or(maxBytes, pageBytes))
	note = strings.TrimSpace(note + " " + v.Starting())
	for _, m := range shown {
		for _, t := range v.readIn(m) {
			read(t)
		}
	}
	return answer, note, err
}

// readIn returns the tools whose input schemas are in a part of what browsed returns.
func (v *View) readIn(m match) []*Tool {
	all := v.all().tools
	if len(m.at) > 0 && m.at[0] != spec.Name("tools") || len(m.at) > 3 || len(m.at) == 3 && m.at[2] != spec.Name("inputSchema") {
		return nil
	}
	if len(m.at) < 2 {
		return all
	}
	i := m.at[1].(spec.Index)
	return all[i : i+1]
}

// bounded returns what a query selected in at most limit bytes: the value of one that
// names one, or an array of what matches. shown are the matches that are there whole,
// note says how much is not.
func bounded(q *pathQuery, matches []match, limit int) (answer json.RawMessage, shown []match, note string, err error) {
	if q.definite() && len(matches) == 1 {
		if len(matches[0].raw) <= limit {
			return matches[0].raw, matches, "", nil
		}
		matches = matches[0].elements()
	}
	answer, n := firstOf(matches, limit)
	switch {
	case len(matches) > 0 && n == 0:
		return nil, nil, "", fmt.Errorf("what matches first has %d characters, of which at most %d are shown: ask for a part of it, such as its name", Units(string(matches[0].raw)), limit)
	case n < len(matches):
		note = fmt.Sprintf("Cut: the first %d of %d. Ask for less of each, such as its name, or for a part, such as [%d:%d].", n, len(matches), n, 2*n)
	}
	return answer, matches[:n], note, nil
}

// Query is Browse without a bound.
func (v *View) Query(query string) (json.RawMessage, error) {
	q, matches, err := v.query(query)
	switch {
	case err != nil:
		return nil, err
	case q.definite() && len(matches) == 1:
		return matches[0].raw, nil
	}
	answer, _ := firstOf(matches, math.MaxInt)
	return answer, nil
}

func (v *View) query(text string) (q *pathQuery, matches []match, err error) {
	if q, err = parsePath(text); err != nil {
		return nil, nil, fmt.Errorf("%s is no JSONPath query: %w. %s", quote(cut(fold(text), nameShown)), err, browseExample)
	}
	return q, q.find(v.browsed()), nil
}

// browsed is the text that queries run over.
func (v *View) browsed() json.RawMessage {
	out := []byte(`{"tools":[`)
	for i, t := range v.all().tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v.Definition(t)...)
	}
	out = append(out, `],"servers":[`...)
	for i, p := range v.all().parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"name":%s,"description":%s,"state":%s,"tools":[`, wire.Quote(p.server.Name), wire.Quote(p.server.Description), wire.Quote(p.browsedState()))
		for j, t := range p.tools {
			if j > 0 {
				out = append(out, ',')
			}
			out = wire.AppendQuote(out, t.Name)
		}
		out = append(out, "]}"...)
	}
	return append(out, "]}"...)
}

func (p *part) browsedState() string {
	switch {
	case p.info.Loaded:
		return "loaded"
	case p.info.Stored:
		return "stored"
	case p.server.Lazy:
		return "not loaded"
	case p.info.Down != "":
		return "could not be started: " + cut(p.info.Down, lineWidth)
	}
	return "starting"
}

// firstOf returns an array of the first parts, as many as limit bytes hold.
func firstOf(parts []match, limit int) (array json.RawMessage, shown int) {
	array = json.RawMessage(`[`)
	for _, part := range parts {
		separator := min(shown, 1)
		if len(array)+separator+len(part.raw)+len("]") > limit {
			break
		}
		array = append(append(array, ","[:separator]...), part.raw...)
		shown++
	}
	return append(array, ']'), shown
}
