package activity

import (
	"cmp"
	"slices"
	"time"
)

// Stats are statistics of calls.
type Stats struct {
	Since   time.Time   `json:"since"` // the first line
	Lines   int         `json:"lines"`
	Dropped int64       `json:"dropped,omitempty"` // calls that are missing in the record
	Tools   []ToolStats `json:"tools"`             // most called first
	Builtin []ToolStats `json:"own"`               // tools of dynmcp's own
	Search  SearchStats `json:"search"`
	Unused  []Unused    `json:"never_used"`
	Session *Session    `json:"last_session,omitempty"`
}

// ToolStats are the statistics of one tool, of another method of a server, or of a server.
type ToolStats struct {
	Name   string         `json:"name"`
	Server string         `json:"server,omitempty"`
	Calls  int            `json:"calls"`
	Errors int            `json:"errors"`
	Kinds  map[string]int `json:"errors_by_kind,omitempty"`
	P50    float64        `json:"p50_ms"` // including the start of the server
	P99    float64        `json:"p99_ms"`
	Sent50 float64        `json:"p50_sent_ms"` // without the start of the server
	Sent99 float64        `json:"p99_sent_ms"`
	Tokens int            `json:"tokens"` // of arguments and results
	Last   time.Time      `json:"last"`

	times, sent []float64 // of the last calls
	next        int       // index of the time to overwrite next
}

// SearchStats are the statistics of searches for tools.
type SearchStats struct {
	Answers  int            `json:"answers"`
	Queries  int            `json:"queries"`
	Empty    int            `json:"empty"` // answers that show no definition
	Tokens   int            `json:"tokens"`
	Followed int            `json:"followed"` // answers after which a tool was called in the same session
	Next     map[string]int `json:"next"`     // how often each tool was
}

// An Unused is a server with tools that were never called.
type Unused struct {
	Server string   `json:"server"`
	Lazy   bool     `json:"lazy"`
	All    bool     `json:"all"` // none of its tools was called
	Tools  []string `json:"tools"`
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

// A Server describes a server of the config.
type Server struct {
	Name  string
	Lazy  bool
	Tools []string // names as the server lists them, empty if unknown
}

// Summarize returns the statistics of lines, which are sorted by time, and the unused tools of
// servers.
func Summarize(lines []Line, servers []Server) *Stats {
	s := &Stats{
		Lines: len(lines), Tools: []ToolStats{}, Builtin: []ToolStats{}, Search: SearchStats{Next: map[string]int{}}, Unused: []Unused{}, Session: LastSession(lines),
	}
	searched := map[string]bool{} // sessions in which a search was the last call
	for i := range lines {
		l := &lines[i]
		if i == 0 {
			s.Since = l.Time
		}
		s.Dropped += l.Dropped
		s.Search.add(l, searched)
	}
	called := map[string]bool{}
	for _, t := range By(lines, (*Line).Name) {
		called[t.Name], called[t.Server] = true, true
		if t.Server == "" {
			s.Builtin = append(s.Builtin, *t)
		} else {
			s.Tools = append(s.Tools, *t)
		}
	}
	for _, all := range [][]ToolStats{s.Tools, s.Builtin} {
		slices.SortFunc(all, func(a, b ToolStats) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name)) })
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

// LastSession returns the counts of the session of the last line, or nil if there are no lines.
func LastSession(lines []Line) *Session {
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

// By returns the statistics of lines by a name, such as that of their tool or server.
func By(lines []Line, name func(*Line) string) map[string]*ToolStats {
	by := map[string]*ToolStats{}
	for i := range lines {
		l := &lines[i]
		t := by[name(l)]
		if t == nil {
			t = &ToolStats{Name: name(l), Server: l.Server}
			by[t.Name] = t
		}
		t.Add(l, len(lines))
	}
	for _, t := range by {
		t.Measure()
	}
	return by
}

// Add counts a call, whose times are those of the last most calls.
func (t *ToolStats) Add(l *Line, most int) {
	t.Calls++
	t.Tokens += l.TokensIn + l.TokensOut
	if l.Failed() {
		if t.Kinds == nil {
			t.Kinds = map[string]int{}
		}
		t.Errors++
		t.Kinds[l.Kind]++
	}
	if l.Outcome != "not_sent" {
		if len(t.times) < most {
			t.times, t.sent = append(t.times, 0), append(t.sent, 0)
		}
		t.times[t.next], t.sent[t.next] = l.MS, l.MS-l.StartMS
		t.next = (t.next + 1) % most
	}
	if l.Time.After(t.Last) {
		t.Last = l.Time
	}
}

// Measure sets the quantiles.
func (t *ToolStats) Measure() {
	t.P50, t.P99 = quantiles(t.times)
	t.Sent50, t.Sent99 = quantiles(t.sent)
}

// quantiles returns the values that half and 99 % of the given ones do not exceed, 0 without any.
func quantiles(values []float64) (p50, p99 float64) {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n > 0 {
		p50, p99 = sorted[n/2], sorted[min(n*99/100, n-1)]
	}
	return p50, p99
}

// add counts a search, and the call that comes next in its session.
func (s *SearchStats) add(l *Line, searched map[string]bool) {
	session := l.Run + " " + l.Session
	switch {
	case l.Queries > 0:
		s.Answers++
		s.Queries += l.Queries
		s.Tokens += l.TokensOut
		if l.Shown == 0 {
			s.Empty++
		}
		searched[session] = true
	case !l.IsBuiltin() && l.Tool != "" && searched[session]:
		s.Followed++
		s.Next[l.Name()]++
		delete(searched, session)
	}
}
