package results

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A stored result can be read by its user only, also on disk, and is removed by Close.
func TestKeptResults(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR")) // of Windows
	var k PartialResults
	ann, bob := "ann", "bob"
	whole := json.RawMessage(`{"content":[1.0]}`)
	handle, err := k.Add(ann, "", 700, whole)
	if err != nil {
		t.Fatal(err)
	}
	got, limit, ok := k.Get(ann, handle)
	if !ok || string(got) != string(whole) || limit != 700 {
		t.Errorf("got %s, %d, %t", got, limit, ok)
	}
	if _, _, ok := k.Get(bob, handle); ok {
		t.Error("another user can read it")
	}
	info, err := k.all[0].file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 && runtime.GOOS != "windows" {
		t.Errorf("the file is open to others: %v", info.Mode())
	}
	left := func() []os.DirEntry {
		all, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if left := left(); runtime.GOOS != "windows" && len(left) > 0 {
		t.Errorf("SIGKILL would leave %v", left)
	}
	k.Close()
	if left := left(); len(left) > 0 {
		t.Errorf("%v stays", left)
	}
	if _, err := k.Add(ann, "", 700, whole); err == nil {
		t.Error("it is kept after the end")
	}
}

func TestOldKeptResultsGo(t *testing.T) {
	var k PartialResults
	defer k.Close()
	one, two := "one", "two"
	other, err := k.Add(two, "", 1, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var handles []string
	for n := range MaxOfUser + 2 {
		handle, err := k.Add(one, "", 1, fmt.Appendf(nil, `{"n":%d}`, n))
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, handle)
	}
	for n, handle := range handles {
		if _, _, ok := k.Get(one, handle); ok != (n >= 2) {
			t.Errorf("%d is kept: %t", n, ok)
		}
	}
	if _, _, ok := k.Get(two, other); !ok {
		t.Error("another user's is gone")
	}

	k.all[4].size = maxUserBytes // handles[5], after other and handles[2:5]: the user has too much until it is dropped
	if _, err := k.Add(one, "", 1, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := k.Get(one, handles[5]); ok {
		t.Error("more is kept than is allowed")
	}
	if _, _, ok := k.Get(one, handles[6]); !ok {
		t.Error("more went than had to")
	}
}

func TestKeptResultsOfAllUsersHaveABound(t *testing.T) {
	var k PartialResults
	defer k.Close()
	few, err := k.Add("few", "", 0, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 * MaxOfUser {
		if _, err := k.Add(fmt.Sprint("user", i%10), "", 0, json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(k.all); got != maxResults {
		t.Errorf("%d results are kept, want %d", got, maxResults)
	}
	if _, _, ok := k.Get("few", few); !ok {
		t.Error("the oldest went, and not one of a user with more")
	}
	of := map[string]int{}
	for _, r := range k.all {
		of[r.user]++
	}
	for user, n := range of {
		if n > maxResults/10+1 {
			t.Errorf("%s has %d results", user, n)
		}
	}
}

// If all results are too large together, one of the user with the most bytes is dropped.
func TestKeptResultsOfAllUsersHaveABoundInBytes(t *testing.T) {
	var k PartialResults
	defer k.Close()
	add := func(user string, size int64) (handle string) {
		t.Helper()
		handle, err := k.Add(user, "", 0, json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		k.all[len(k.all)-1].size = size
		return handle
	}
	few := add("few", 10)
	most := add("most", maxUserBytes)
	for i := range maxBytes/maxUserBytes - 1 {
		add(fmt.Sprint("user", i), maxUserBytes-100)
	}
	last := add("last", 400)
	add("few", 0) // exceeds the limit
	kept := map[string]bool{}
	for _, r := range k.all {
		kept[r.handle] = true
	}
	if kept[most] || !kept[few] || !kept[last] {
		t.Errorf("kept: the result of the largest holder %t, those of the others %t, %t", kept[most], kept[few], kept[last])
	}
}

func TestKeptResultsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k PartialResults
		defer k.Close()
		handle, err := k.Add("", "", 1, json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		file := k.all[0].file
		time.Sleep(storedFor - time.Second)
		if _, _, ok := k.Get("", handle); !ok {
			t.Error("it is gone too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, _, ok := k.Get("", handle); ok {
			t.Error("it is kept for longer")
		}
		if _, err := file.Stat(); err == nil || len(k.all) != 0 {
			t.Errorf("its file is open (%v), and %d results are listed", err, len(k.all))
		}
	})
}

func TestStructuredContentThatRepeatsTheTextCountsOnce(t *testing.T) {
	const text = `"0123456789 0123456789 0123456789 0123456789"`
	const twoTexts = `[{"type":"text","text":"01234567890123456789"},{"type":"text","text":"abcdefghijabcdefghij"}]`
	for _, test := range []struct {
		content, structured string
		repeats             bool
	}{
		{`[{"type":"text","text":` + text + `}]`, `{"content":` + text + `}`, true},
		{`[{"type":"text","text":` + text + `}]`, `{"result":` + text + `}`, true},
		{`[{"type":"text","text":` + text + `}]`, `{"result":` + text + `,"n":1}`, false},
		{`[{"type":"text","text":` + text + `}]`, `{"result":"other 789 0123456789 0123456789 0123456789"}`, false},
		{`[{"type":"text","text":"{\"a\": [1, 2], \"b\": 123}"}]`, `{"a":[1,2],"b":1234567890123456789012345678901}`, false},
		{`[{"type":"text","text":"{\"b\": \"01234567890\", \"a\": [1]}"}]`, `{"a":[1],"b":"01234567890"}`, true},
		{`[{"type":"text","text":"[{\"b\": \"012345678901234567890\"}]"}]`, `{"result":[{"b":"012345678901234567890"}]}`, true},
		{twoTexts, `{"result":["01234567890123456789","abcdefghijabcdefghij"]}`, true},
		{twoTexts, `{"result":["abcdefghijabcdefghij","01234567890123456789"]}`, false},
		{twoTexts, `{"result":"01234567890123456789\nabcdefghijabcdefghij"}`, true},
	} {
		result := json.RawMessage(`{"content":` + test.content + `,"structuredContent":` + test.structured + `}`)
		if _, cut := Shape(result, &catalog.Tool{MaxOutputChars: 60}, false); cut == test.repeats {
			t.Errorf("%s: cut is %t (JSON: %t)", result, cut, wire.Valid(result))
		}
	}
}

// The handle of a replica's result ends in the name of the replica.
func TestHandlesNameTheirReplica(t *testing.T) {
	var k PartialResults
	defer k.Close()
	for _, replica := range []string{"", "east-1"} {
		handle, err := k.Add("", replica, 1, json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		random, name, _ := strings.Cut(handle, "-")
		if _, _, ok := k.Get("", handle); !ok || name != replica || len(random) != 12 || strings.HasSuffix(handle, "-") {
			t.Errorf("replica %q: got the handle %q", replica, handle)
		}
	}
}
