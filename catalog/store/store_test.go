package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
)

var files = schema.Server{Name: "files", Transport: schema.Stdio, Command: "npx", Args: []string{"-y", "mcp-files", "/tmp"}}

// listing has bytes that an encoder of JSON would change.
func listing(tools ...string) *catalog.Listing {
	l := &catalog.Listing{
		Protocol: "2025-11-25", Instructions: "Read <all> of it.\nThen write.", Tasks: catalog.HandshakeTasks,
		Capabilities: json.RawMessage(`{"tools":{ "listChanged" : true },"x":1.0}`),
		Info:         json.RawMessage(`{"name":"files","n":9007199254740993}`),
		Resources:    []json.RawMessage{json.RawMessage(`{"uri":"file:///a","name":"<a>"}`)},
		Prompts:      []json.RawMessage{json.RawMessage(`{"name":"p","description":"\u003cp>"}`)},
	}
	for _, tool := range tools {
		l.Tools = append(l.Tools, json.RawMessage(tool))
	}
	return l
}

const read1 = `{ "name":"read", "x-grease":1.0,` + "\n" + `"description":"<b>&", "inputSchema":{"type":"object"} }`

func dirOf(s *Listings) string { return s.backend.(*directory).path }

// kept returns a store with that listing, and the path of its file.
func kept(t *testing.T, l *catalog.Listing) (*Listings, string) {
	t.Helper()
	s := New(filepath.Join(t.TempDir(), "catalog"))
	if err := s.Keep(files, l); err != nil {
		t.Fatal(err)
	}
	return s, s.where(files)
}

func load(t *testing.T, s *Listings) *catalog.Stored {
	t.Helper()
	stored, err := s.Load(files)
	if err != nil || stored == nil {
		t.Fatalf("got %v, %v", stored, err)
	}
	return stored
}

func TestListingIsStoredVerbatim(t *testing.T) {
	t.Parallel()
	want := listing(read1, `{"name":"write"}`)
	s, path := kept(t, want)
	stored := load(t, s)
	got := stored.Listing
	got.Tools = stored.ReadTools()
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if stored.Count != 2 || stored.OnlyTasks {
		t.Errorf("got %d tools, only tasks %t", stored.Count, stored.OnlyTasks)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

func TestEmptyListingIsKept(t *testing.T) {
	t.Parallel()
	s, _ := kept(t, &catalog.Listing{})
	stored := load(t, s)
	if len(stored.ReadTools()) != 0 || stored.Capabilities != nil || stored.Info != nil || len(stored.Prompts) != 0 {
		t.Errorf("got %+v", stored)
	}
}

func TestToolsForViewsAreCounted(t *testing.T) {
	t.Parallel()
	s, _ := kept(t, listing(`{"name":"a","_meta":{"ui":{"visibility":["app"]}}}`, `{"name":"b","_meta":{"ui":{"visibility":["app","model"]}}}`, `{"name":"visibility"}`))
	if got := load(t, s); got.Count != 3 || got.ForViews != 1 {
		t.Errorf("got %d of %d", got.ForViews, got.Count)
	}
}

func TestOnlyTasksIsStored(t *testing.T) {
	t.Parallel()
	s, _ := kept(t, listing(`{"name":"slow","execution":{"taskSupport":"required"}}`))
	if !load(t, s).OnlyTasks {
		t.Error("OnlyTasks is not set")
	}
}

func TestMissingListingIsNoError(t *testing.T) {
	t.Parallel()
	for _, s := range []*Listings{nil, New(filepath.Join(t.TempDir(), "none"))} {
		if stored, err := s.Load(files); stored != nil || err != nil {
			t.Errorf("got %v, %v", stored, err)
		}
	}
	var off *Listings
	if err := off.Keep(files, listing(read1)); err != nil {
		t.Error(err)
	}
}

func TestKeyIdentifiesTheServer(t *testing.T) {
	t.Parallel()
	s := New("x")
	with := func(change func(*schema.Server)) schema.Server {
		other := files
		other.Args = append([]string{}, files.Args...)
		change(&other)
		return other
	}
	for name, other := range map[string]schema.Server{
		"name":     with(func(s *schema.Server) { s.Name = "more-files" }),
		"command":  with(func(s *schema.Server) { s.Command = "bunx" }),
		"argument": with(func(s *schema.Server) { s.Args[2] = "/home" }),
		"cwd":      with(func(s *schema.Server) { s.Cwd = "/srv" }),
		"variable": with(func(s *schema.Server) { s.Env = map[string]string{"ROOT": "/"} }),
	} {
		if s.where(other) == s.where(files) {
			t.Errorf("another %s gives the same key", name)
		}
	}
	for name, other := range map[string]schema.Server{
		"description": with(func(s *schema.Server) { s.Description = "Files." }),
		"filter":      with(func(s *schema.Server) { s.ToolFilter = []string{"read"} }),
		"load":        with(func(s *schema.Server) { s.Load = schema.LoadEager }),
	} {
		if s.where(other) != s.where(files) {
			t.Errorf("another %s gives another key", name)
		}
	}
	one := with(func(s *schema.Server) {
		s.Env = map[string]string{"GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}
		s.Args = append(s.Args, "--api-key", "sk-0123456789abcdefghijABCDEFGHIJ012345")
	})
	two := with(func(s *schema.Server) {
		s.Env = map[string]string{"GITHUB_TOKEN": "something else"}
		s.Args = append(s.Args, "--api-key", "sk-9876543210abcdefghijABCDEFGHIJ012345")
	})
	if s.where(one) != s.where(two) {
		t.Error("the key depends on a secret")
	}
}

// A file that is damaged anywhere is an error.
func TestDamagedFileIsAnError(t *testing.T) {
	t.Parallel()
	s, path := kept(t, listing(read1, `{"name":"write"}`))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := func(what string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if stored, err := s.Load(files); stored != nil || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, %v", what, stored, err)
		}
	}
	for n := range whole {
		broken(fmt.Sprintf("its first %d bytes", n), whole[:n])
		damaged := bytes.Clone(whole)
		damaged[n] ^= 4
		broken(fmt.Sprintf("byte %d changed", n), damaged)
	}
	broken("more than was written", append(bytes.Clone(whole), '\n'))
	if err := s.Keep(files, listing(read1)); err != nil {
		t.Fatal(err)
	}
	load(t, s)
}

// A head that does not fit the texts is an error, even if the sum is right.
func TestHeadMustFitTheTexts(t *testing.T) {
	t.Parallel()
	whole, err := encode("files", listing(read1))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(whole, []byte{'\n'})
	line, rest, _ := bytes.Cut(body, []byte{'\n'})
	with := func(change func(*head)) error {
		var h head
		if err := json.Unmarshal(line, &h); err != nil {
			t.Fatal(err)
		}
		change(&h)
		changed, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		body := slices.Concat(changed, []byte{'\n'}, rest)
		_, err = decode(append(fmt.Appendf(nil, "%s %d %08x\n", magic, format, crc32.Checksum(body, castagnoli())), body...))
		return err
	}
	if err := with(func(*head) {}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*head){
		"a text ends where the file does":     func(h *head) { h.Lengths[6]++ },
		"a text ends behind the file":         func(h *head) { h.Lengths[6] += 2 },
		"a text ends before its line":         func(h *head) { h.Lengths[6]-- },
		"a text has less than nothing":        func(h *head) { h.Lengths[0] = -1 },
		"there is a text too few":             func(h *head) { h.Lengths = h.Lengths[:6] },
		"there is no such answer about tasks": func(h *head) { h.Tasks = int(catalog.StatelessTasks) + 1 },
		"the answer about tasks is negative":  func(h *head) { h.Tasks = -1 },
	} {
		if err := with(change); !errors.Is(err, errCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for tasks := catalog.NoTasks; tasks <= catalog.StatelessTasks; tasks++ {
		if err := with(func(h *head) { h.Tasks = int(tasks) }); err != nil {
			t.Errorf("tasks %d: %v", tasks, err)
		}
	}
}

func TestFileOfAnotherFormat(t *testing.T) {
	t.Parallel()
	s, path := kept(t, listing(read1))
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("dynmcp-listing 2 whatever\ncomes then")
	if _, err := s.Load(files); err == nil || !strings.Contains(err.Error(), "newer dynmcp") {
		t.Errorf("got %v", err)
	}
	if err := s.Keep(files, listing(read1)); err == nil || !strings.Contains(err.Error(), "newer dynmcp") {
		t.Errorf("a listing of a newer dynmcp is replaced: %v", err)
	}
	write("dynmcp-listing 0 whatever\n")
	if _, err := s.Load(files); err == nil || !strings.Contains(err.Error(), "older dynmcp") {
		t.Errorf("got %v", err)
	}
	if err := s.Keep(files, listing(read1)); err != nil {
		t.Fatal(err)
	}
	load(t, s)
}

func TestDirectoryInPlaceOfFileIsNotOpened(t *testing.T) {
	t.Parallel()
	s, path := kept(t, listing(read1))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(files); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("got %v", err)
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(filepath.Join(file, "catalog"))
	if err := s.Keep(files, listing(read1)); err == nil {
		t.Error("a listing is stored below a file")
	}
}

// A list that failed this time keeps its entries.
func TestFailedListKeepsItsEntries(t *testing.T) {
	t.Parallel()
	s, _ := kept(t, listing(read1))
	failed := listing(read1)
	failed.Resources, failed.Prompts = nil, nil
	failed.Failed = map[string]string{"resources/list": "no answer in time"}
	if err := s.Keep(files, failed); err != nil {
		t.Fatal(err)
	}
	stored := load(t, s)
	if len(stored.Resources) != 1 || len(stored.Prompts) != 0 {
		t.Errorf("got %d resources, %d prompts", len(stored.Resources), len(stored.Prompts))
	}
}

func TestOfUsesTheDirectoryOfTheConfig(t *testing.T) {
	t.Parallel()
	dir := func(path string) *string { return &path }
	abs := filepath.Join(t.TempDir(), "abs")
	for _, test := range []struct {
		named *string
		want  string
	}{{nil, "fallback"}, {dir(""), ""}, {dir(abs), abs}, {dir("here"), filepath.Join("/etc", "here")}} {
		got := ""
		if s := Of(&schema.Config{Path: "/etc/mcp.json", Catalog: schema.Catalog{Dir: test.named}}, "fallback"); s != nil {
			got = dirOf(s)
		}
		if got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if Of(&schema.Config{SingleWrap: true}, "fallback") != nil || Of(&schema.Config{}, "") != nil {
		t.Error("got a store")
	}
}

// A file that was not used for 90 days is removed when another is stored. Used files stay,
// and so does any file that is no listing.
func TestUnusedFilesAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named := func(name string) schema.Server {
		return schema.Server{Name: name, Transport: schema.Stdio, Command: name}
	}
	age := func(path string, days int) {
		then := time.Now().AddDate(0, 0, -days)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	first := New(dir)
	for name, days := range map[string]int{"gone": 120, "read": 60, "listed": 60, "lately": 60} {
		if err := first.Keep(named(name), listing(read1)); err != nil {
			t.Fatal(err)
		}
		age(first.where(named(name)), days)
	}
	other := filepath.Join(dir, "notes.listing")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	age(other, 400)
	if stored, err := first.Load(named("read")); err != nil || stored == nil {
		t.Fatalf("got %v, %v", stored, err)
	}
	if err := first.Keep(named("listed"), listing(read1)); err != nil { // the same as before
		t.Fatal(err)
	}
	for _, name := range []string{"read", "listed"} {
		info, err := os.Stat(first.where(named(name)))
		if err != nil || time.Since(info.ModTime()) > 24*time.Hour {
			t.Errorf("the use of %s is not recorded: %v, %v", name, info.ModTime(), err)
		}
	}
	if err := New(dir).Keep(named("new"), listing(read1)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"gone": false, "read": true, "listed": true, "lately": true, "new": true} {
		if _, err := os.Stat(first.where(named(name))); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// Lists of extensions are stored, without entries that are not JSON.
func TestListsOfExtensionsAreStored(t *testing.T) {
	l := &catalog.Listing{}
	l.AddMore("skills/list", []json.RawMessage{[]byte(`{"uri":"skill://x/SKILL.md"}`), []byte(`{`)})
	text, err := encode("a", l)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s", stored.More["skills/list"]); got != `[{"uri":"skill://x/SKILL.md"}]` {
		t.Errorf("got %s", got)
	}
}
