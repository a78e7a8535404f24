package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// A Reader reads the lines of a directory, including lines that are still being added.
type Reader struct {
	Dir string

	Broken int // invalid lines so far

	read map[string]int64 // bytes of each file
}

// A Filter selects lines. An empty field matches any line.
type Filter struct {
	Since                         time.Time
	Server, Tool, Principal, Host string
	Session, Run, Outcome         string
	Failed                        bool
}

// Passes reports whether a line is selected.
func (f *Filter) Passes(l *Line) bool {
	_, subject, _ := strings.Cut(l.Principal, " ")
	if f.Principal != "" && f.Principal != l.Principal && f.Principal != subject {
		return false
	}
	for _, part := range [][2]string{{f.Server, l.Server}, {f.Host, l.Host}, {f.Session, l.Session}, {f.Run, l.Run}, {f.Outcome, l.Outcome}} {
		if part[0] != "" && part[0] != part[1] {
			return false
		}
	}
	return (f.Tool == "" || f.Tool == l.Tool || f.Tool == l.Name()) && !l.Time.Before(f.Since) && (!f.Failed || l.Failed())
}

// Next returns the lines written since its last call, in the order in which the calls
// began.
func (r *Reader) Next(ctx context.Context, f *Filter) (lines []Line, err error) {
	if r.read == nil {
		r.read = map[string]int64{}
	}
	for _, info := range list(r.Dir) {
		at := r.read[info.Name()]
		if info.Size() <= at || info.ModTime().Before(f.Since) {
			continue
		}
		text, err := regular.Read(ctx, filepath.Join(r.Dir, info.Name()), 4*fullSize)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue // it was removed, or is not ours
		}
		end := bytes.LastIndexByte(text, '\n') + 1
		for line := range bytes.Lines(text[min(at, int64(end)):end]) {
			lines = r.add(lines, line, f)
		}
		r.read[info.Name()] = int64(end)
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return lines, nil
}

// add adds a line, if it is valid and selected.
func (r *Reader) add(lines []Line, text []byte, f *Filter) []Line {
	if strings.TrimSpace(string(text)) == "" {
		return lines
	}
	var l Line
	if json.Unmarshal(text, &l) != nil {
		r.Broken++
		return lines
	}
	if f.Passes(&l) {
		lines = append(lines, l)
	}
	return lines
}
