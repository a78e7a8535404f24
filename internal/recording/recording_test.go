package recording

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/event"
)

func record(t *testing.T, most int64, redact func(string) string, show func(*event.Tap)) string {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "a[1].jsonl"), Header{Dynmcp: "1"}, most)
	if err != nil {
		t.Fatal(err)
	}
	messages := &event.Tap{}
	r := Start(messages, f, f.Began(), redact)
	show(messages)
	if err := errors.Join(r.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if messages.Watched() {
		t.Error("the tap is still watched")
	}
	return f.Path
}

func same(text string) string { return text }

// Messages are recorded byte by byte, with their connection and time.
func TestBytesStay(t *testing.T) {
	const text = `{"jsonrpc":"2.0", "id":1.0,"result":{"é":"\u00e9<&>/\/","n":9007199254740993,"b":1e2,"a":null,"a":1.0}}`
	path := record(t, 1<<20, same, func(to *event.Tap) {
		to.Show(to.Upstream("files"), true, []byte(text[:20]), []byte(text[20:]))
		to.Show(event.Connection{Session: "s"}, false, []byte(`[`+text+`,{"jsonrpc":"2.0","method":"x"}]`))
	})
	header, lines, err := Read(t.Context(), path)
	if err != nil || len(lines) != 2 || header.Format != Format || header.Dynmcp != "1" {
		t.Fatalf("%+v %v %v", header, lines, err)
	}
	one, two := lines[0], lines[1]
	if string(one.Message) != text || one.Dir != "in" || one.Server != "files" || one.Conn != 1 || one.Host != "" {
		t.Errorf("got %+v %s", one, one.Message)
	}
	var methods []string
	for m := range two.Messages() {
		methods = append(methods, m.Method)
	}
	if two.Dir != "out" || two.Host != "s" || two.MS < one.MS || !slices.Equal(methods, []string{"", "x"}) {
		t.Errorf("got %+v %q", two, methods)
	}
}

// A message that is no longer JSON without its secrets is recorded as text.
func TestRedacted(t *testing.T) {
	redact := func(text string) string { return strings.ReplaceAll(text, "4711", "[redacted]") }
	path := record(t, 1<<20, redact, func(to *event.Tap) {
		to.Show(event.Connection{Server: "a"}, true, []byte(`{"method":"x","params":{"s":"4711"}}`))
		to.Show(event.Connection{Server: "a"}, true, []byte(`{"method":"x","params":{"n":4711}}`))
	})
	_, lines, err := Read(t.Context(), path)
	if err != nil || len(lines) != 2 || string(lines[0].Message) != `{"method":"x","params":{"s":"[redacted]"}}` || lines[1].Text != `{"method":"x","params":{"n":[redacted]}}` {
		t.Errorf("got %+v %v", lines, err)
	}
}

// A full file is followed by another. The first, with the handshakes, and the last ones are kept.
func TestRotated(t *testing.T) {
	message := func(i int) string {
		return fmt.Sprintf(`{"method":"x","params":{"i":%d,"s":%q}}`, i, strings.Repeat("x", 700))
	}
	var path string
	f, err := Create(filepath.Join(t.TempDir(), "a.jsonl"), Header{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	path = f.Path
	for i := range 9 {
		if _, err := f.Write(Line{Dir: "in", Server: "s", Message: []byte(message(i))}.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, lines, err := Read(t.Context(), path)
	var kept []int
	for i := range 9 {
		if slices.ContainsFunc(lines, func(l Line) bool { return string(l.Message) == message(i) }) {
			kept = append(kept, i)
		}
	}
	if err != nil || !slices.Equal(kept, []int{0, 6, 7, 8}) || len(lines) != 4 {
		t.Errorf("kept %v of %d: %v", kept, len(lines), err)
	}
}

// A truncated last line is ignored. Other files and later formats are errors.
func TestRead(t *testing.T) {
	const begin = `{"dynmcp_recording":1,"began":"2026-01-01T00:00:00Z"}` + "\n"
	for text, want := range map[string]string{
		begin + `{"ms":1,"new":{},"message":{}}` + "\n" + `{"ms":2,"mess`: "",
		begin:                           "",
		begin + "no\n":                  "line 2",
		"":                              "this is no recording",
		"{}\n":                          "no dynmcp_recording",
		`{"dynmcp_recording":2}` + "\n": "newer dynmcp",
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Read(t.Context(), path); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// stuck is a writer that blocks until the channel is closed, and then fails.
type stuck chan struct{}

func (s stuck) Write([]byte) (int, error) { <-s; return 0, io.ErrClosedPipe }

// A write error ends the recording.
func TestStuckDestination(t *testing.T) {
	messages, to := &event.Tap{}, make(stuck)
	r := Start(messages, to, Header{}.Began, same)
	messages.Show(event.Connection{}, true, []byte("x"))
	close(to)
	<-r.Done()
	if messages.Watched() || !errors.Is(r.Close(), io.ErrClosedPipe) {
		t.Error("the recording continues after a write error, or Close does not return the error")
	}
}
