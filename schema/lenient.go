package schema

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// setBroken switches off the servers whose entries have errors, if the options say so: an entry stands
// alone. If the file has other errors, all of them are reported.
func setBroken(r *reading) {
	if !isLenient(r) {
		return
	}
	broken := map[string]syntax.Errors{} // by server
	for _, e := range r.errs {
		name := serverAt(r.entries, e.Path)
		if name == "" {
			return
		}
		broken[name] = append(broken[name], e)
	}
	r.errs = nil
	for _, list := range [][]Server{r.doc.MCP, r.doc.MCPServers, r.doc.Servers} {
		for i := range list {
			if errs := broken[list[i].Name]; len(errs) > 0 && (!list[i].Disabled || list[i].Off != nil) {
				list[i].switchOff(errs)
			}
		}
	}
}

// serverAt returns the name of the server in whose entry a path is, "" if it is in none. entries are
// the names by paths.
func serverAt(entries map[string]string, path string) string {
	for at, name := range entries {
		if rest, below := strings.CutPrefix(path, at); below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return name
		}
	}
	return ""
}

// switchOff says of the first error of the entry what is wrong, and how many more there are.
func (s *Server) switchOff(errs syntax.Errors) {
	sortErrors(errs)
	first := errs[0]
	what := fmt.Sprintf("its entry cannot be used: %s: %v (line %d)", first.Path, first.Err, first.Line)
	if more := len(errs) - 1; more > 0 {
		what += fmt.Sprintf(", and %d more", more)
	}
	off := Off{Failed: []string{what}, Hint: first.Hint}
	if off.Hint == "" {
		off.Hint = "correct it"
	}
	if s.Off != nil {
		off.Missing = s.Off.Missing
	}
	if s.Disabled, s.Off = true, &off; s.Transport == "" {
		s.Transport = Stdio
	}
}
