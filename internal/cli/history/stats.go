package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
)

// Stats are the statistics of calls, together with unused tools.
type Stats struct {
	*activity.Stats

	Unused  []Unused `json:"never_used"`
	Session *Session `json:"last_session,omitempty"`
}

// An Unused is a server with tools that were never called.
type Unused struct {
	Server string   `json:"server"`
	Lazy   bool     `json:"lazy"`
	All    bool     `json:"all"` // none of its tools was called
	Tools  []string `json:"tools"`
}

// A Server describes a server of the config.
type Server struct {
	Name  string
	Lazy  bool
	Tools []string // names as the server lists them, empty if unknown
}

// Summarize returns the statistics of lines, and the unused tools of servers.
func Summarize(lines []activity.Line, servers []Server) *Stats {
	s := &Stats{Stats: activity.Summarize(lines), Unused: []Unused{}, Session: LastSession(lines)}
	called := map[string]bool{}
	for _, t := range s.Tools {
		called[t.Name], called[t.Server] = true, true
	}
	for _, server := range servers {
		u := Unused{Server: server.Name, Lazy: server.Lazy, All: !called[server.Name], Tools: []string{}}
		for _, tool := range server.Tools {
			if !called[server.Name+"/"+tool] {
				u.Tools = append(u.Tools, tool)
			}
		}
		if slices.Sort(u.Tools); u.All || len(u.Tools) > 0 {
			s.Unused = append(s.Unused, u)
		}
	}
	return s
}

// Write prints the statistics as text.
func (s *Stats) Write(out *terminal.Writer) {
	if s.Lines == 0 {
		out.Say("No calls were recorded.")
		return
	}
	out.Heading(fmt.Sprintf("%s since %s", display.Plural(s.Lines, "call"), s.Since.Local().Format(time.DateTime)))
	if s.Dropped > 0 {
		out.Say("%s could not be recorded.", display.Plural(int(s.Dropped), "call"))
	}
	table := terminal.Table{Header: []string{"TOOL", "CALLS", "ERRORS", "P50", "P99", "TOKENS", "LAST"}, Right: 1}
	for _, t := range append(slices.Clone(s.Tools), s.Builtin...) {
		table.Rows = append(table.Rows, []string{
			t.Name, fmt.Sprint(t.Calls), fmt.Sprint(t.Errors), millis(t.P50), millis(t.P99), fmt.Sprint(t.Tokens), t.Last.Local().Format(time.DateTime),
		})
	}
	table.Write(out)
	if s := s.Search; s.Answers > 0 {
		out.Printf("\n")
		out.Heading("Searches")
		out.Say("%s in %s, %d of them empty, %d tokens; %d were followed by a call.",
			display.Plural(s.Queries, "query"), display.Plural(s.Answers, "answer"), s.Empty, s.Tokens, s.Followed)
	}
	s.writeUnused(out)
}

func (s *Stats) writeUnused(out *terminal.Writer) {
	if len(s.Unused) == 0 {
		return
	}
	out.Printf("\n")
	out.Heading("Never used")
	for _, u := range s.Unused {
		switch {
		case u.All && u.Lazy:
			out.Say("%s: no call. Remove it if it is not needed.", u.Server)
		case u.All:
			out.Say(`%s: no call. "load": "lazy" with a description starts it only when it is used; or remove it.`, u.Server)
		default:
			out.Say("%s: %s: %s", u.Server, display.Plural(len(u.Tools), "tool"), display.Cut(strings.Join(u.Tools, ", "), 200))
		}
	}
}

// A Session counts the tokens of a host's last session.
type Session struct {
	Host    string    `json:"host"`
	Began   time.Time `json:"began"`
	Calls   int       `json:"calls"`
	Builtin int       `json:"discover_tokens"` // answers of dynmcp's own tools
	Tools   int       `json:"result_tokens"`   // results of servers' tools
	Asked   int       `json:"argument_tokens"` // arguments, which the model writes
}

// LastSession returns the counts of the session of the last line, or nil if there are no lines.
func LastSession(lines []activity.Line) *Session {
	if len(lines) == 0 {
		return nil
	}
	last := lines[len(lines)-1]
	s := &Session{Host: last.Host}
	for i := range lines {
		l := &lines[i]
		if l.Run != last.Run || l.Session != last.Session {
			continue
		}
		if s.Calls++; s.Calls == 1 {
			s.Began = l.Time
		}
		s.Asked += l.TokensIn
		if l.IsBuiltin() {
			s.Builtin += l.TokensOut
		} else {
			s.Tools += l.TokensOut
		}
	}
	return s
}
