package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Found answers a search as text and structured content: the best tools, the
// servers not loaded yet whose description fits, and if nothing fits how to go
// on. It shows up to limit tools, 0 meaning 10.
func (v *View) Found(query string, limit int) Page {
	if limit <= 0 {
		limit = 10
	}
	found := v.Find(query, min(limit, pageTools))
	var text strings.Builder
	var tools, servers []string
	for _, m := range found {
		tools = append(tools, brief("name", m.Tool.Name, "description", m.Tool.Summary))
		text.WriteString(m.Tool.line(lineWidth) + "\n")
	}
	if len(found) == 0 {
		fmt.Fprintf(&text, "No tool matches %s. discover_tool with no argument lists all.\n", shown(query))
	}
	for i, p := range v.fitting(query) {
		if i == 0 {
			text.WriteString("Servers not loaded that may have more, call load_mcp:\n")
		}
		servers = append(servers, p.json())
		text.WriteString(p.deferred(lineWidth))
	}
	return Page{
		Text: strings.TrimSuffix(text.String(), "\n"),
		Structured: json.RawMessage(`{"tools":[` + strings.Join(tools, ",") +
			`],"servers":[` + strings.Join(servers, ",") + `]}`),
	}
}

// fitting returns the servers whose tools are not known and whose name or
// description has a word of the query, in config order; all if none has and
// there is nothing else to offer.
func (v *View) fitting(query string) []*part {
	asked := map[string]bool{}
	for _, w := range nameWords(query) {
		asked[w] = !stopWords[w]
	}
	var ps []*part
	for _, p := range v.lazy {
		if p.index != nil {
			continue
		}
		fits := false
		words(p.server.Name+" "+p.intro, func(w string) { fits = fits || asked[w] })
		if fits {
			ps = append(ps, p)
		}
	}
	return ps[:min(len(ps), nearestShown)]
}
