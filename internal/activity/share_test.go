package activity

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One user's calls, however many, replace only his own lines, also those of his earlier runs. The
// record stays within its size, and each user's newest lines stay.
func TestEachUserHasAShareOfTheRecord(t *testing.T) {
	dir := t.TempDir()
	o := options(dir, &bytes.Buffer{})
	o.Bytes = 256 << 10
	add := func(l *Log, user, tool string) {
		e := call(tool)
		e.User, e.Host = user, user
		l.Add(e)
	}
	count := func() map[string]int {
		by := map[string]int{}
		for _, line := range all(t, dir) {
			by[line.Host]++
		}
		return by
	}
	for run := range 3 {
		l := newLog(o)
		for n := range 20 {
			for user := range 5 {
				add(l, fmt.Sprint("quiet ", user), fmt.Sprint(run, " ", n))
			}
			for range 200 {
				add(l, "loud", fmt.Sprint(run, " ", n))
			}
			l.flush()
		}
		for user := range 5 {
			if got := count()[fmt.Sprint("quiet ", user)]; got != 20*(run+1) {
				t.Fatalf("after run %d the record has %d calls of quiet user %d, want %d", run, got, user, 20*(run+1))
			}
		}
	}
	if got := count()["loud"]; got < 400 {
		t.Errorf("the record has %d calls of the loud user, who uses less than there is room for", got)
	}
	lines := all(t, dir)
	if last := lines[len(lines)-1]; last.Tool != "2 19" { // of the last round; a coarse clock gives many one time
		t.Errorf("the last line is %+v", last)
	}
	var sum int64
	for _, info := range list(dir) {
		sum += info.Size()
	}
	if sum > o.Bytes+2*o.Bytes/8 {
		t.Errorf("the files have %d bytes, of %d", sum, o.Bytes)
	}
}

// Two users with many calls share the record equally, whoever began.
func TestLoudUsersShareEqually(t *testing.T) {
	dir := t.TempDir()
	o := options(dir, &bytes.Buffer{})
	o.Bytes = 256 << 10
	l := newLog(o)
	for n := range 60 {
		for _, user := range []string{"first", "second"} {
			for range 100 {
				if e := call("x"); user == "first" || n >= 20 {
					e.User, e.Host = user, user
					l.Add(e)
				}
			}
		}
		l.flush()
	}
	by := map[string]int{}
	for _, line := range all(t, dir) {
		by[line.Host]++
	}
	if a, b := by["first"], by["second"]; a < b*2/3 || b < a*2/3 {
		t.Errorf("the record has %d and %d lines", a, b)
	}
}

// A few calls of many users are in one file. A user with many has another, for a day.
func TestFewFilesAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		o := options(dir, &bytes.Buffer{})
		o.Bytes = 0
		l := newLog(o)
		add := func(user string, calls int) {
			for range calls {
				e := call("x")
				e.User, e.Host = user, strings.Repeat("h", 1<<10)
				l.Add(e)
			}
			l.flush()
		}
		files := func(want int) {
			t.Helper()
			if got := len(list(dir)); got != want {
				t.Errorf("there are %d files, want %d", got, want)
			}
		}
		for n := range 1000 {
			add(fmt.Sprint("user ", n), 1)
		}
		files(1)
		add("loud", fullSize/8>>10) // the last of them exceeds the share
		add("loud", 10)
		files(2)
		add("user 1", 10)
		files(2)
		if len(l.files.own) != 1 || len(l.files.wrote) > 1001 {
			t.Errorf("%d users have files, %d are known", len(l.files.own), len(l.files.wrote))
		}
		add("away", fullSize/8>>10)
		add("away", 1)
		files(3)
		time.Sleep(fullAge)
		add("user 1", 1)
		add("loud", 1)
		files(4)
		if len(l.files.own) != 0 || len(l.files.wrote) > 2 {
			t.Errorf("a day later %d users have files, %d are known", len(l.files.own), len(l.files.wrote))
		}
	})
}

// Files that are too old go when another one begins, and no younger ones.
func TestOldFilesGo(t *testing.T) {
	dir := t.TempDir()
	l := newLog(options(dir, &bytes.Buffer{}))
	for name, age := range map[string]time.Duration{"a": 59 * time.Minute, "b": 61 * time.Minute, "c-d-0001-e": 61 * time.Minute} {
		path := dir + "/" + name + suffix
		if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	l.Add(call("x"))
	l.flush()
	if all := list(dir); len(all) != 2 || all[0].Name() != "a"+suffix {
		t.Errorf("%d files are left, the first is %s", len(all), all[0].Name())
	}
	l.files.age = 0 // no limit
	if err := os.Chtimes(dir+"/a"+suffix, time.Now(), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	l.files.sweep()
	if len(list(dir)) != 2 {
		t.Error("a file went, though files have no age")
	}
}

// Users who write as much as others stay in the shared file, however long the run.
func TestSteadyUsersShareFiles(t *testing.T) {
	dir := t.TempDir()
	o := options(dir, &bytes.Buffer{})
	o.Bytes = 16 << 20
	l := newLog(o)
	for range 100 {
		for user := range 20 {
			for range 20 {
				e := call("x")
				e.User = fmt.Sprint(user)
				l.Add(e)
			}
		}
		l.flush()
	}
	var sum int64
	for _, info := range list(dir) {
		if sum += info.Size(); ownerOf(info.Name()) != "" {
			t.Errorf("%s is the file of one user", info.Name())
		}
	}
	if sum < 4*l.files.full() {
		t.Errorf("only %d bytes were written", sum)
	}
}
