package lock

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/definition"
)

func digestOf(text string) string { return definition.Digest([]byte(text)) }

func TestLockFileIsSortedAndStable(t *testing.T) {
	l := Lock{
		"zeta":  {Tools: map[string]string{"b": digestOf("b"), "a": digestOf("a")}},
		"files": {Package: "npm:@x/files@1.2.3", Tools: map[string]string{"rеad": digestOf("1"), "two words": digestOf("2"), "read": digestOf("3")}},
		"empty": {Tools: map[string]string{}},
	}
	want := lockHead + `dynmcp-lock 1
server empty
server files npm:@x/files@1.2.3
tool files read ` + digestOf("3") + `
tool files "r\u0435ad" ` + digestOf("1") + `
tool files "two words" ` + digestOf("2") + `
server zeta
tool zeta a ` + digestOf("a") + `
tool zeta b ` + digestOf("b") + "\n"
	if got := string(l.Text()); got != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
	again, err := Parse([]byte(strings.ReplaceAll(want, "\n", "\r\n"))) // as git may check it out
	if err != nil || string(again.Text()) != want {
		t.Errorf("read again: %v\n%s", err, again.Text())
	}
}

func TestBrokenLockIsAnError(t *testing.T) {
	head := "dynmcp-lock 1\n"
	digest := digestOf("x")
	for text, want := range map[string]string{
		"":                                      "it is empty",
		"# nothing\n":                           "it is empty",
		"{}\n":                                  `line 1: want "dynmcp-lock 1"`,
		"dynmcp-lock 2\n":                       "line 1: it was written by another version of dynmcp",
		head + "<<<<<<< HEAD\n":                 "line 2: a merge conflict is not resolved",
		head + "tool a b " + digest + "\n":      `line 2: a tool of "a", for which there is no server line before`,
		head + "server a\nserver a\n":           `line 3: the server "a" is there twice`,
		head + "server a\ntool a b sha256:12\n": "line 3: want ",
		head + "server a\ntool a \"b " + digest: "line 3: a quote is not closed",
		head + "server a\ntool a b " + digest[:70] + "\n":                     "line 3: want ",
		head + "server a\ntool a b " + digest + "\ntool a b " + digestOf("y"): `line 4: the tool "b" of "a" is there twice`,
	} {
		if l, err := Parse([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want %q", text, l, err, want)
		}
	}
}

// Concurrent updates do not overwrite each other.
func TestUpdatesOfManyAreAllKept(t *testing.T) {
	dir := t.TempDir()
	f := Files{Lock: filepath.Join(dir, FileName), Definitions: filepath.Join(dir, "definitions")}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := f.Update(func(l Lock) { l[fmt.Sprint("s", i)] = &Server{Tools: map[string]string{"t": digestOf("t")}} }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if l, _, err := f.Read(); err != nil || len(l) != 20 {
		t.Errorf("got %d servers, %v", len(l), err)
	}
}

// Update writes through a symbolic link, and keeps the mode of the file.
func TestLinkedLockStaysALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "shared"), filepath.Join(dir, FileName)
	if err := os.WriteFile(target, Lock{}.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("shared", link); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if err := (Files{Lock: link}).Update(func(l Lock) { l.Set("a", "", nil) }); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(target)
	if info, linked := os.Lstat(link); err != nil || linked != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(string(text), "server a") {
		t.Errorf("the file has %q, the link is %v: %v, %v", text, info, err, linked)
	}
	if info, err := os.Stat(target); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func TestBrokenLockIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	f := Files{Lock: filepath.Join(dir, FileName)}
	if err := os.WriteFile(f.Lock, []byte("<<<<<<<\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Update(func(l Lock) { l["a"] = &Server{} }); err == nil {
		t.Error("no error")
	}
	if text, _ := os.ReadFile(f.Lock); string(text) != "<<<<<<<\n" {
		t.Errorf("it is %q now", text)
	}
}

func TestDefinitionsAreFoundByDigest(t *testing.T) {
	f := Files{Definitions: filepath.Join(t.TempDir(), "definitions")}
	tool := definition.New("read", []byte(`{"name":"read","icons":[1],"description":"Reads.","inputSchema":{"type":"object"}}`), "")
	if err := f.Keep([]definition.Tool{tool}); err != nil {
		t.Fatal(err)
	}
	if d, ok := f.Definition(tool.Digest); !ok || string(d) != `{"description":"Reads.","inputSchema":{"type":"object"},"name":"read"}` {
		t.Errorf("got %s, %t", d, ok)
	}
	if err := os.WriteFile(f.path(tool.Digest), []byte(`{"description":"Reads all."}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, ok := f.Definition(tool.Digest); ok {
		t.Errorf("a changed definition is returned: %s", d)
	}
	if err := f.Keep([]definition.Tool{tool}); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Definition(tool.Digest); !ok {
		t.Error("it was not written again")
	}
}

// A start reads the lock of 1,280 tools, the size of the corpus.
func BenchmarkParse(b *testing.B) {
	l := Lock{}
	for i := range 40 {
		s := &Server{Tools: map[string]string{}}
		for j := range 32 {
			s.Tools[fmt.Sprint("tool_with_a_name_", j)] = digestOf(fmt.Sprint(i, j))
		}
		l[fmt.Sprint("server", i)] = s
	}
	text := l.Text()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
