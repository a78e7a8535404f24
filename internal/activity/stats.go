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
}

// ToolStats are the statistics of one tool, of another method of a server, or of a server.
type ToolStats struct {
	Name   string    `json:"name"`
	Server string    `json:"server,omitempty"`
	Calls  int       `json:"calls"`
	Errors int       `json:"errors"`
	P50    float64   `json:"p50_ms"` // including the start of the server
	P99    float64   `json:"p99_ms"`
	Sent50 float64   `json:"p50_sent_ms"` // without the start of the server
	Sent99 float64   `json:"p99_sent_ms"`
	Tokens int       `json:"tokens"` // of arguments and results
	Last   time.Time `json:"last"`

	times, sent []float64
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

// Summarize returns the statistics of lines, which are sorted by time.
func Summarize(lines []Line) *Stats {
	s := &Stats{Lines: len(lines), Tools: []ToolStats{}, Builtin: []ToolStats{}, Search: SearchStats{Next: map[string]int{}}}
	searched := map[string]bool{} // sessions in which a search was the last call
	for i := range lines {
		l := &lines[i]
		if i == 0 {
			s.Since = l.Time
		}
		s.Dropped += l.Dropped
		s.Search.add(l, searched)
	}
	for _, t := range By(lines, (*Line).Name) {
		if t.Server == "" {
			s.Builtin = append(s.Builtin, *t)
		} else {
			s.Tools = append(s.Tools, *t)
		}
	}
	for _, all := range [][]ToolStats{s.Tools, s.Builtin} {
		slices.SortFunc(all, func(a, b ToolStats) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name)) })
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
		t.add(l)
	}
	for _, t := range by {
		slices.Sort(t.times)
		slices.Sort(t.sent)
		t.P50, t.P99 = Quantile(t.times, .5), Quantile(t.times, .99)
		t.Sent50, t.Sent99 = Quantile(t.sent, .5), Quantile(t.sent, .99)
	}
	return by
}

func (t *ToolStats) add(l *Line) {
	t.Calls++
	t.Tokens += l.TokensIn + l.TokensOut
	if l.Failed() {
		t.Errors++
	}
	if l.Outcome != "not_sent" {
		t.times, t.sent = append(t.times, l.MS), append(t.sent, l.MS-l.StartMS)
	}
	if l.Time.After(t.Last) {
		t.Last = l.Time
	}
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

// Quantile returns the value that the given fraction of sorted values does not exceed, 0 without
// values.
func Quantile[T cmp.Ordered](sorted []T, part float64) (at T) {
	if len(sorted) > 0 {
		at = sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
	}
	return at
}
