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

	Broken int // invalid or oversized lines so far

	read map[string]*position // in each file
}

// A position is how far a file was read.
type position struct {
	at   int64
	size int64 // of the file then: an incomplete line is read again only after a change
	over bool  // within an oversized line, which is skipped
}

// Limits of what is read at once: a part of a file, and a line, of which calls have at most a tenth.
const (
	partSize = 4 << 20
	lineSize = 1 << 20
)

// A Filter selects lines. An empty field matches any line.
type Filter struct {
	Since, Until                  time.Time
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
	return (f.Tool == "" || f.Tool == l.Tool || f.Tool == l.Name()) && !l.Time.Before(f.Since) && (f.Until.IsZero() || l.Time.Before(f.Until)) && (!f.Failed || l.Failed())
}

// Next returns the lines written since its last call, in the order in which the calls
// began.
func (r *Reader) Next(ctx context.Context, f *Filter) (lines []Line, err error) {
	if r.read == nil {
		r.read = map[string]*position{}
	}
	for _, info := range list(r.Dir) {
		at := r.read[info.Name()]
		if at == nil {
			at = &position{}
			r.read[info.Name()] = at
		}
		if info.Size() == at.size {
			continue
		}
		at.size = info.Size()
		for info.Size() > at.at && !info.ModTime().Before(f.Since) {
			text, err := regular.Part(ctx, filepath.Join(r.Dir, info.Name()), at.at, partSize)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				at.size = 0 // it was removed, is not ours, or is read the next time
				break
			}
			n := whole(at, text)
			if n == 0 {
				break // its last line is being written
			}
			for line := range bytes.Lines(text[:n]) {
				lines = r.add(lines, line, at, f)
			}
			at.at += int64(n)
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return lines, nil
}

// whole returns how many bytes of a part of a file are to be read now: its complete lines, or the
// part of a line that is too long.
func whole(at *position, text []byte) int {
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == 0 && (at.over || len(text) > lineSize) {
		return len(text)
	}
	return end
}

// add adds a line, if it is valid and selected.
func (r *Reader) add(lines []Line, text []byte, at *position, f *Filter) []Line {
	complete := text[len(text)-1] == '\n'
	skipped := at.over
	if at.over = !complete; skipped {
		return lines
	}
	if !complete || len(text) > lineSize {
		r.Broken++
		return lines
	}
	if len(bytes.TrimSpace(text)) == 0 {
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
