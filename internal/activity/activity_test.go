package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/redact"
)

func options(dir string, log *bytes.Buffer) LogOptions {
	return LogOptions{Dir: dir, Bytes: 1 << 20, Age: time.Hour, Logger: slog.New(slog.NewTextHandler(log, nil)), Keep: Keep{Redact: func(text string, _ bool) string { return text }}}
}

func open(t *testing.T, o LogOptions) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func call(tool string) Entry {
	return Entry{Line: Line{Time: time.Now().UTC(), Session: "s", Server: "a", Tool: tool, Kind: "ok", Outcome: "done", MS: 1}, Input: json.RawMessage(`{"a":1}`)}
}

func all(t *testing.T, dir string) []Line {
	t.Helper()
	r := &Reader{Dir: dir}
	lines, err := r.Next(context.Background(), &Filter{})
	if err != nil || r.Broken > 0 {
		t.Fatalf("%d broken lines, %v", r.Broken, err)
	}
	return lines
}

// A call is written within 100 ms, even if no other call follows.
func TestLinesAreWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, options(dir, &bytes.Buffer{}))
		defer l.Close()
		for n := range 5 {
			l.Add(call(fmt.Sprint(n)))
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if got := len(all(t, dir)); got != n+1 {
				t.Fatalf("%d lines after 100 ms, want %d", got, n+1)
			}
		}
	})
}

// A file is replaced by a new one after a day.
func TestAFileTakesADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, options(dir, &bytes.Buffer{}))
		defer l.Close()
		for n, step := range []struct {
			wait  time.Duration
			files int
		}{{0, 1}, {fullAge - time.Minute, 1}, {2 * time.Minute, 2}, {fullAge - time.Minute, 2}} {
			time.Sleep(step.wait)
			l.Add(call(fmt.Sprint(n)))
			time.Sleep(2 * writeEvery)
			synctest.Wait()
			if got := len(list(dir)); got != step.files || len(all(t, dir)) != n+1 {
				t.Errorf("after call %d: %d files of %d lines, want %d files", n, got, len(all(t, dir)), step.files)
			}
		}
	})
}

// Close writes the waiting calls. Only the user may read the files.
func TestCloseWritesAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below")
	l := open(t, options(dir, &bytes.Buffer{}))
	for n := range 1000 {
		l.Add(call(fmt.Sprint(n)))
	}
	l.Close()
	l.Add(call("late"))
	lines := all(t, dir)
	if len(lines) != 1000 || lines[0].Digest == "" || lines[0].Run == "" || lines[0].TokensIn == 0 || lines[0].Arguments != nil {
		t.Fatalf("%d lines, the first %+v", len(lines), lines[0])
	}
	for _, info := range list(dir) {
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", info.Name(), info.Mode())
		}
	}
}

// Rotation keeps the files within their total size, and removes old ones, also of other runs.
func TestFilesAreRotated(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "20200101T000000-x-0001.jsonl")
	other := filepath.Join(dir, "notes.txt")
	for _, name := range []string{old, other} {
		if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Now(), time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	o := options(dir, &bytes.Buffer{})
	o.Bytes = 64 << 10
	for range 2 {
		l := newLog(o)
		for range 100 {
			for range 20 {
				l.Add(call("x"))
			}
			l.flush()
		}
	}
	var sum int64
	for _, info := range list(dir) {
		sum += info.Size()
		if info.Size() > 16<<10 {
			t.Errorf("%s has %d bytes", info.Name(), info.Size())
		}
	}
	if sum > 64<<10+16<<10 || sum < 32<<10 {
		t.Errorf("%d bytes", sum)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old file is still there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a file of others: %v", err)
	}
}

// When writes fail, calls are dropped and counted. The number is logged, and recorded with the
// next line that is written.
func TestDroppedLinesAreCounted(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "record"), &bytes.Buffer{}
	l := newLog(options(dir, log))
	l.Add(call("first"))
	l.flush()
	restore := breakDir(t, dir)
	for range 7 {
		l.Add(call("lost"))
	}
	l.flush()
	l.Add(call("lost"))
	l.flush()
	restore()
	l.Add(call("last"))
	l.flush()
	lines := all(t, dir)
	if len(lines) != 2 || lines[1].Tool != "last" || lines[1].Dropped != 8 {
		t.Errorf("got %+v", lines)
	}
	if text := log.String(); !strings.Contains(text, "calls are missing") || !strings.Contains(text, "lines=7") || !strings.Contains(text, "err=") {
		t.Errorf("log: %s", text)
	}
	s := Summarize(lines, nil)
	if s.Dropped != 8 {
		t.Errorf("got %+v", s)
	}
}

// breakDir replaces a directory by a file, so that nothing is written there until restore.
func breakDir(t *testing.T, dir string) (restore func()) {
	t.Helper()
	if err := errors.Join(os.Rename(dir, dir+"-away"), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(dir), os.Rename(dir+"-away", dir)); err != nil {
			t.Fatal(err)
		}
	}
}

// After a partial write only the complete lines are counted.
func TestPartlyWrittenLinesAreCounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	f := &newLog(options(dir, &bytes.Buffer{})).files
	write := func(lines string, want int, fails bool) {
		t.Helper()
		if n, err := f.write(&f.shared, []byte(lines)); n != want || (err != nil) != fails {
			t.Errorf("%q: %d lines, %v; want %d", lines, n, err, want)
		}
	}
	write("{\"tool\":\"a\"}\n{\"tool\":\"b\"}\n", 2, false)
	write("{\"too", 0, false) // as a full disk leaves it
	write("{\"tool\":\"c\"}\n", 1, false)
	restore := breakDir(t, dir)
	write("{\"tool\":\"d\"}\n", 0, true)
	restore()
	write("{\"tool\":\"e\"}\n", 1, false)
	r := &Reader{Dir: dir}
	lines, err := r.Next(context.Background(), &Filter{})
	if err != nil || len(lines) != 4 || r.Broken != 1 || len(list(dir)) != 1 {
		t.Errorf("%d lines, %d broken, %v", len(lines), r.Broken, err)
	}
}

// The waiting calls are bounded: in number, in bytes, and for each user, who leaves room for others.
func TestWaitingIsBounded(t *testing.T) {
	l := newLog(options(t.TempDir(), &bytes.Buffer{})) // nobody writes
	add := func(user string, input, output int) bool {
		before := l.dropped
		l.Add(Entry{User: user, Input: make([]byte, input), Output: make([]byte, output)})
		return l.dropped != before+1
	}
	const most = maxHeld / entrySize
	for n := range most {
		if ok := add("one", 0, 0); ok != (n < most/2) {
			t.Fatalf("call %d of one user: waits: %v", n, ok)
		}
	}
	for n := range most {
		if ok := add("other", 0, 0); ok != (n < most/4) {
			t.Fatalf("call %d of another user: waits: %v", n, ok)
		}
	}
	if !add("third", 1<<20, 1<<20) || add("third", 13<<20, 0) || add("third", 0, 13<<20) || !add("third", 0, 0) {
		t.Error("the bytes of arguments and results are not counted")
	}
	if add("fourth", maxHeld/4, 0) {
		t.Error("all users together exceed the limit")
	}
	l.flush()
	if !add("one", maxHeld+1, 0) {
		t.Error("a call does not wait though it is alone")
	}
}

// A file that another run has removed is replaced by a new one. A truncated line is skipped, and
// the lines after it are read.
func TestLostFilesAndLines(t *testing.T) {
	dir := t.TempDir()
	l := newLog(options(dir, &bytes.Buffer{}))
	l.Add(call("one"))
	l.flush()
	if err := os.Remove(filepath.Join(dir, l.files.shared.name)); err != nil {
		t.Fatal(err)
	}
	l.Add(call("two"))
	l.flush()
	if lines := all(t, dir); len(lines) != 1 || lines[0].Tool != "two" {
		t.Errorf("got %+v", lines)
	}
	name := filepath.Join(dir, "z.jsonl")
	if err := os.WriteFile(name, []byte(`{"tool":"cu`+"\n"+`{"server":"a","tool":"whole","time":"2026-01-01T00:00:00Z"}`+"\n"+`{"tool":"not yet`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Reader{Dir: dir}
	lines, err := r.Next(context.Background(), &Filter{Tool: "a/whole"})
	if err != nil || r.Broken != 1 || len(lines) != 1 {
		t.Errorf("got %+v, %d broken, %v", lines, r.Broken, err)
	}
}

// Arguments, results and queries are recorded only on request, without secrets.
func TestWhatIsKept(t *testing.T) {
	var secrets redact.Redactor
	secrets.Add("hunter22")
	keep := Keep{Redact: func(text string, whole bool) string {
		if whole {
			return secrets.String(text)
		}
		safe, _ := secrets.Split(text)
		return safe
	}}
	entry := func() Entry {
		e := call("x")
		e.Queries, e.Input = 1, json.RawMessage(`{"query":"a hunter22","big":"`+strings.Repeat("x", maxKept)+`hunter22"}`)
		e.Output, e.BytesOut = []byte(`{"content":[{"type":"text","text":"hunter22 and more"}]}`), 0
		e.BytesOut = len(e.Output)
		return e
	}
	e := entry()
	e.finish(keep)
	if e.Arguments != nil || e.Result != nil || e.Query != nil || e.TokensOut < 3 || e.TokensOut > 8 {
		t.Errorf("nothing was asked for: got %+v", e.Line)
	}
	keep.Arguments, keep.Results, keep.Queries = true, true, true
	e = entry()
	e.finish(keep)
	text, err := json.Marshal(&e.Line)
	if err != nil || strings.Contains(string(text), "hunter22") || strings.Contains(string(text), "xhun") {
		t.Errorf("a secret was recorded: %v", err)
	}
	if string(e.Query) != `"a [redacted]"` || !strings.Contains(string(e.Result), "[redacted] and more") || e.Arguments[0] != '"' {
		t.Errorf("got %s, %s, %.40s", e.Query, e.Result, e.Arguments)
	}
}

// append writes the same members as encoding/json.
func TestLinesAreJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)
	whole := Line{
		at, "r", "s", `a "host" <é>`, "u", "discover", "a", "get", "m", "done", "ok", 3, 0.071, 12.5, 1, 2, 3, 4, "sha256:00", 5, 6,
		json.RawMessage(`"q"`), json.RawMessage("{\n\"a\": [1]}"), json.RawMessage(`{}`), 1 << 40, "login",
	}
	for _, l := range []Line{whole, {Time: at, Run: "r", Session: "s", Outcome: "done", Kind: "ok"}} {
		want, err := json.Marshal(&l)
		if err != nil {
			t.Fatal(err)
		}
		got := l.append(nil)
		var members, wanted map[string]any
		if err := errors.Join(json.Unmarshal(got, &members), json.Unmarshal(want, &wanted)); err != nil || !reflect.DeepEqual(members, wanted) || bytes.ContainsRune(got, '\n') {
			t.Errorf("got  %s\nwant %s\n%v", got, want, err)
		}
	}
}

func TestSummarize(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var lines []Line
	add := func(l Line) {
		at = at.Add(time.Second)
		l.Time, l.Run = at, "r"
		lines = append(lines, l)
	}
	add(Line{Session: "1", Tool: "discover_tool", Kind: "ok", Outcome: "done", Queries: 2, Shown: 1, TokensOut: 100})
	add(Line{Session: "2", Server: "a", Tool: "other", Kind: "ok", Outcome: "done", MS: 5})
	add(Line{Session: "1", Server: "a", Tool: "get", Kind: "ok", Outcome: "done", MS: 10, TokensOut: 7})
	add(Line{Session: "1", Server: "a", Tool: "get", Kind: "denied", Outcome: "not_sent"})
	add(Line{Session: "2", Tool: "discover_tool", Kind: "ok", Outcome: "done", Queries: 1})
	add(Line{Session: "3", Tool: "discover_tool", Kind: "ok", Outcome: "done", Queries: 1})
	add(Line{Session: "2", Server: "a", Method: "resources/read", Kind: "ok", Outcome: "done", MS: 5})
	s := Summarize(lines, nil)
	if !s.Since.Equal(lines[0].Time) || !s.Tools[0].Last.Equal(lines[3].Time) || s.Lines != 7 {
		t.Errorf("got %d lines since %v, the last call of %s at %v", s.Lines, s.Since, s.Tools[0].Name, s.Tools[0].Last)
	}
	if s.Search.Answers != 3 || s.Search.Queries != 4 || s.Search.Empty != 2 || s.Search.Followed != 1 || s.Search.Next["a/get"] != 1 || s.Search.Tokens != 100 {
		t.Errorf("got %+v", s.Search)
	}
	if len(s.Builtin) != 1 || s.Builtin[0].Calls != 3 || len(s.Tools) != 3 || s.Tools[0].Name != "a/get" || s.Tools[0].Errors != 1 || s.Tools[0].P99 != 10 || s.Tools[0].Tokens != 7 {
		t.Errorf("got %+v, %+v", s.Tools, s.Builtin)
	}
}

// Lost lines are logged at once, then at most once a minute, and at the end.
func TestLossIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		dir := filepath.Join(t.TempDir(), "record")
		l := open(t, options(dir, log))
		restore := breakDir(t, dir)
		defer restore()
		lose := func(wait time.Duration, want ...string) {
			t.Helper()
			l.Add(call("x"))
			time.Sleep(wait)
			synctest.Wait()
			var got []string
			for line := range strings.Lines(log.String()) {
				_, line, _ = strings.Cut(line, "lines=")
				line, _, _ = strings.Cut(line, " ")
				got = append(got, line)
			}
			if log.Reset(); !slices.Equal(got, want) {
				t.Errorf("got messages of %v lines, want %v", got, want)
			}
		}
		lose(time.Second, "1")
		lose(30 * time.Second)
		lose(29 * time.Second)
		lose(time.Minute, "3")
		lose(0)
		l.Close()
		if text := log.String(); !strings.Contains(text, "lines=1 ") {
			t.Errorf("at the end: %q", text)
		}
		log.Reset()
		quiet := open(t, options(t.TempDir(), log))
		quiet.Add(call("x"))
		quiet.Close()
		if log.Len() > 0 {
			t.Errorf("nothing was lost: %s", log)
		}
	})
}

// A line reports the loss before it once, and lines are written in pieces.
func TestLossIsRecordedOnce(t *testing.T) {
	dir := t.TempDir()
	l := newLog(options(dir, &bytes.Buffer{}))
	l.keep.Arguments = true
	l.dropped = 3
	for range 3 * writeSize / maxKept {
		e := call("x")
		e.Input = json.RawMessage(`"` + strings.Repeat("x", maxKept-2) + `"`)
		l.Add(e)
	}
	l.flush()
	l.Add(call("y"))
	l.flush()
	lines := all(t, dir)
	if s := Summarize(lines, nil); s.Dropped != 3 || lines[0].Dropped != 3 {
		t.Errorf("%d lines report a loss of %d", len(lines), s.Dropped)
	}
}

// A record that nobody asked for: nothing before the first call, of it only sizes, and one warning.
func TestUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		dir := filepath.Join(t.TempDir(), "state", "activity")
		o := options(dir, log)
		o.Unasked, o.Keep.Sizes = true, true
		l := open(t, o)
		if _, err := os.Stat(filepath.Dir(dir)); err == nil {
			t.Error("a directory is made before the first call")
		}
		end := event.Call{Method: "tools/call", Upstream: "a", Tool: "get", Kind: "ok", Outcome: "done", Arguments: json.RawMessage(`{"a":1}`), Result: []byte(`{}`), Asked: 40, Answered: 400}
		l.Add(EntryOf(&end, true))
		time.Sleep(time.Second)
		synctest.Wait()
		lines := all(t, dir)
		if len(lines) != 1 || lines[0].TokensIn != 10 || lines[0].TokensOut != 100 || lines[0].Digest != "" || log.Len() > 0 {
			t.Errorf("got %+v, log %s", lines, log)
		}
		restore := breakDir(t, dir)
		for range 5 {
			l.Add(EntryOf(&end, true))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}
		l.Add(EntryOf(&end, true))
		l.Close()
		if n := strings.Count(log.String(), "calls are missing"); n != 1 || !strings.Contains(log.String(), `\"activity\": false`) {
			t.Errorf("%d warnings: %s", n, log)
		}
		restore()
		again := open(t, o)
		again.Add(EntryOf(&end, true))
		again.Close()
		if got := len(all(t, dir)); got != 2 {
			t.Errorf("two runs recorded %d calls", got)
		}
	})
}
