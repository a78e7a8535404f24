package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/theory/jsonpath/spec"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/jsonquery"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// hints tell how to list tools and load a server on this surface.
var hints = catalog.Hints{
	List: `mcp_discover {"jsonpath": "$.tools[*].name"}`,
	Load: `mcp_call {"method": "tools/list", "params": {"server": "%s"}}`,
}

// describe returns the description of mcp_discover: how many tools can be queried, and which servers
// may add more. It has at most maxChars UTF-16 units, unless that is 0 or less.
func describe(v *catalog.View, maxChars int) string {
	tools, _, _ := v.Texts().Counts()
	return v.Texts().WithUnlisted(hints, "Discover available tools using JSONPath. "+tools+` available. The query runs over {"tools": [the definitions], "servers": [{"name", "description", "state", "tools"}]}, such as $.tools[?(@.name contains 'file')].`, maxChars)
}

// example is added to the error of a wrong query.
const example = `For example: $.tools[?(@.name contains 'file')].name, $.tools[0:5], $.servers[*].name`

// maxAnswer limits an answer in bytes, unless the config sets a limit: models read that much well.
const maxAnswer = 16 << 10

// browse answers a JSONPath query over the catalogue: the JSON array of the matches, or the value of a
// query that names one. note, which may be empty, says what is missing. An error is for the model
// to read. show is called with each tool whose input schema is in the answer. The answer has at
// most maxBytes; 0 is maxAnswer.
func browse(v *catalog.View, query string, maxBytes int, show func(*catalog.Tool)) (answer json.RawMessage, note string, err error) {
	q, matches, err := find(v, query)
	if err != nil {
		return nil, "", err
	}
	if len(matches) == 0 && !v.Complete() {
		return json.RawMessage(`[]`), "Nothing of what is known matches. " + strings.TrimSpace(v.Texts().HowToLoad(hints)+" "+v.Texts().NotListed(" ")), nil
	}
	answer, shown, note, err := q.Within(matches, cmp.Or(maxBytes, maxAnswer))
	for _, m := range shown {
		for _, t := range shownBy(v, m) {
			show(t)
		}
	}
	return answer, strings.TrimSpace(note + " " + v.Texts().Unlisted()), err
}

// shownBy returns the tools whose input schemas are in a part of the document.
func shownBy(v *catalog.View, m jsonquery.Match) []*catalog.Tool {
	all, at := v.Tools(), m.Path
	if len(at) > 0 && at[0] != spec.Name("tools") || len(at) > 3 || len(at) == 3 && at[2] != spec.Name("inputSchema") {
		return nil
	}
	if len(at) < 2 {
		return all
	}
	i := at[1].(spec.Index)
	return all[i : i+1]
}

// Query answers a query as mcp_discover does, without a limit.
func Query(v *catalog.View, query string) (json.RawMessage, error) {
	q, matches, err := find(v, query)
	if err != nil {
		return nil, err
	}
	return q.All(matches), nil
}

func find(v *catalog.View, query string) (*jsonquery.Query, []jsonquery.Match, error) {
	q, err := jsonquery.Parse(query)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not a JSONPath query: %w. %s", wire.Quote(display.Asked(query)), err, example)
	}
	return q, q.Find(document(v)), nil
}

// document is the JSON text that queries run over.
func document(v *catalog.View) json.RawMessage {
	names := map[string][][]byte{} // of the tools of each server
	var tools, servers []json.RawMessage
	for _, t := range v.Tools() {
		tools = append(tools, t.Definition())
		names[t.Server] = append(names[t.Server], wire.Quote(t.Name))
	}
	for _, s := range v.Servers() {
		servers = append(servers, fmt.Appendf(nil, `{"name":%s,"description":%s,"state":%s,"tools":%s}`,
			wire.Quote(s.Name), wire.Quote(s.Description), wire.Quote(state(s)), wire.Array(names[s.Name])))
	}
	return fmt.Appendf(nil, `{"tools":%s,"servers":%s}`, wire.Array(tools), wire.Array(servers))
}

func state(s catalog.ServerInfo) string {
	switch {
	case s.Loaded:
		return "loaded"
	case s.Stored:
		return "stored"
	case s.Lazy:
		return "not loaded"
	case s.Down != "":
		return "could not be started: " + display.Cut(s.Down, display.LineWidth)
	}
	return "starting"
}
