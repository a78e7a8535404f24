package ui

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
)

// maxCalls limits the calls that a page shows, to the last ones.
const maxCalls = 10_000

// A journal follows the record of calls of a config.
type journal struct {
	mu    sync.Mutex
	read  activity.Reader
	lines []activity.Line // the last maxCalls lines
	first int             // the number of the first line
}

// A kept is a line for the page, without its arguments, result and query.
type kept struct {
	activity.Line

	Kept bool `json:"kept"` // arguments, result or query are in the record
}

type callsQuery struct {
	Place string
	After int // the number of the last line that the page has
}

type callsAnswer struct {
	Last  int    `json:"last"`
	Lines []kept `json:"lines"`
}

// journalOf returns the record of calls of a place, and its directory.
func (s *server) journalOf(ctx context.Context, id string) (*journal, string, error) {
	p, err := s.lately(ctx, id)
	if err != nil {
		return nil, "", err
	}
	d := s.configOf(ctx, p)
	if d.noRecord != nil {
		return nil, "", d.noRecord
	}
	return s.journalIn(d.record), d.record, nil
}

func (s *server) journalIn(dir string) *journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[dir] == nil {
		s.calls[dir] = &journal{read: activity.Reader{Dir: dir}}
	}
	return s.calls[dir]
}

// followLocked reads new lines.
func (j *journal) followLocked(ctx context.Context) error {
	lines, err := j.read.Next(ctx, &activity.Filter{})
	if j.lines = append(j.lines, lines...); len(j.lines) > maxCalls {
		cut := len(j.lines) - maxCalls
		j.lines, j.first = append([]activity.Line(nil), j.lines[cut:]...), j.first+cut
	}
	return err
}

// statsOf computes the statistics of the servers in a record. That of "" is of dynmcp's own tools.
func (s *server) statsOf(ctx context.Context, dir string) map[string]*activity.ToolStats {
	j := s.journalIn(dir)
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.followLocked(ctx) // after an error, earlier lines are used
	return activity.By(j.lines, func(l *activity.Line) string { return l.Server })
}

// callsSince returns the calls recorded since the page's last request.
func (s *server) callsSince(ctx context.Context, q callsQuery) (*callsAnswer, error) {
	j, _, err := s.journalOf(ctx, q.Place)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.followLocked(ctx); err != nil {
		return nil, err
	}
	a := &callsAnswer{Last: j.first + len(j.lines), Lines: []kept{}}
	for i := max(q.After-j.first, 0); i < len(j.lines); i++ {
		l := j.lines[i]
		k := kept{l, l.Arguments != nil || l.Result != nil || l.Query != nil}
		k.Arguments, k.Result, k.Query = nil, nil, nil
		a.Lines = append(a.Lines, k)
	}
	return a, nil
}

type callQuery struct {
	Place, Run, Session string
	Time                time.Time
}

// wholeCall returns a call with its recorded details.
func (s *server) wholeCall(ctx context.Context, q callQuery) (*activity.Line, error) {
	_, dir, err := s.journalOf(ctx, q.Place)
	if err != nil {
		return nil, err
	}
	lines, err := (&activity.Reader{Dir: dir}).Next(ctx, &activity.Filter{Since: q.Time, Run: q.Run, Session: q.Session})
	if err != nil {
		return nil, err
	}
	for i := range lines {
		if lines[i].Time.Equal(q.Time) {
			return &lines[i], nil
		}
	}
	return nil, errors.New("the call is not in the record any more")
}
