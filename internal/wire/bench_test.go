package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// corpus returns messages by name: short calls, long texts, big structures.
func corpus() map[string][]byte {
	text := func(n int) []byte {
		line := `the quick brown fox said \"no\", turned to line 2\n and went on for another sixty characters or so; `
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat(line, n/len(line)))
	}
	var rows strings.Builder
	for n := 0; rows.Len() < 1<<20; n++ {
		fmt.Fprintf(&rows, `{"id":%d,"name":"row %d","tags":["a","b"],"score":%d.50,"open":true,"next":null},`, n, n, n)
	}
	return map[string][]byte{
		"100B":          []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi there"}}}`),
		"1KB":           text(1 << 10),
		"1MB-text":      text(1 << 20),
		"1MB-base64":    fmt.Appendf(nil, `{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"image","data":"%s"}]}}`, strings.Repeat("iVBORw0KGgo", 1<<20/11)),
		"1MB-structure": fmt.Appendf(nil, `{"jsonrpc":"2.0","id":12,"result":{"structuredContent":{"rows":[%s{}]}}}`, rows.String()),
	}
}

// eachSize runs a benchmark for each message.
func eachSize(b *testing.B, run func(b *testing.B, text []byte)) {
	texts := corpus()
	for _, name := range []string{"100B", "1KB", "1MB-text", "1MB-base64", "1MB-structure"} {
		text := texts[name]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			run(b, text)
		})
	}
}

func BenchmarkParse(b *testing.B) {
	eachSize(b, func(b *testing.B, text []byte) {
		for b.Loop() {
			if _, err := Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkJSONValid measures encoding/json for comparison.
func BenchmarkJSONValid(b *testing.B) {
	eachSize(b, func(b *testing.B, text []byte) {
		for b.Loop() {
			if !json.Valid(text) {
				b.Fatal("not valid")
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	eachSize(b, func(b *testing.B, text []byte) {
		r := NewReader(&endless{line: append(text, '\n')}, 16<<20)
		for b.Loop() {
			if _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// endless repeats one line, in reads of at most readChunk bytes.
type endless struct {
	line []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), readChunk)], e.line[e.at:])
	e.at = (e.at + n) % len(e.line)
	return n, nil
}

func BenchmarkSend(b *testing.B) {
	eachSize(b, func(b *testing.B, text []byte) {
		w := NewWriter(io.Discard, 0)
		for b.Loop() {
			w.WaitBelow(4 << 20)
			if err := w.Send(text); err != nil {
				b.Fatal(err)
			}
		}
		w.Close()
	})
}

// BenchmarkBatch answers each of the 64 small messages of one read, over a pipe that is
// read.
func BenchmarkBatch(b *testing.B) {
	line := append(corpus()["100B"], '\n')
	batch := bytes.Repeat(line, 64)
	for name, cork := range map[string]*Cork{"corked": {}, "uncorked": nil} {
		b.Run(name, func(b *testing.B) {
			out, dst, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				_, _ = io.Copy(io.Discard, out)
			}()
			w := NewWriter(dst, 0)
			r := NewReader(&endless{line: batch}, 1<<20)
			w.Cork, r.Cork = cork, cork
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				for range 64 {
					m, err := r.Next()
					if err != nil {
						b.Fatal(err)
					}
					if err := w.Send(m.Raw); err != nil {
						b.Fatal(err)
					}
				}
			}
			r.Uncork()
			w.Close()
			dst.Close()
			<-drained
			out.Close()
		})
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	params := []byte(`{"_meta":{"progressToken":"token-1"},"name":"echo","arguments":{"text":"hi"}}`)
	call := bytes.Join(Request(1, "tools/call", params), nil)
	large := append(bytes.Join(Request(1, "tools/call", []byte(`{"name":"echo","arguments":{"text":"`+strings.Repeat("x", outlined)+`"}}`)), nil), '\n')
	lines := NewReader(&endless{line: large}, 1<<20)
	answer := []byte(`{"result":{"content":[{"type":"text","text":"hi"}]},"jsonrpc":"2.0","id":1}`)
	w := NewWriter(io.Discard, 0)
	defer w.Close()
	for name, test := range map[string]struct {
		allowed float64
		run     func()
	}{
		"Parse of a call":    {0, func() { Parse(call) }},
		"Parse of an answer": {0, func() { Parse(answer) }},
		"Next, with an outline": {0, func() {
			m, _ := lines.Next()
			_, _, _ = m.Outline.FindStrict(m.Params, "name", "arguments")
			m.Outline.Get(m.Params, "_meta")
		}},
		"Valid":       {0, func() { Valid(call) }},
		"Get":         {0, func() { Get(Get(params, "_meta"), "progressToken") }},
		"Members":     {0, func() { Get(params, "nowhere") }},
		"GetStrict":   {0, func() { _, _, _ = GetStrict(params, "name", "arguments") }},
		"Find":        {0, func() { Find(params, "_meta", "progressToken") }},
		"Replace":     {1, func() { Replace(params, Edit{Find(params, "name"), []byte(`"x"`)}) }},
		"Set":         {1, func() { Set(params, "name", []byte(`"x"`)) }},
		"Quote":       {1, func() { Quote("notifications/progress") }},
		"Result":      {1, func() { Result([]byte("1"), params) }},
		"SendRequest": {0, func() { w.SendRequest(0, 1, "tools/call", params); w.WaitBelow(0) }},
		"Send":        {0, func() { w.Send(params); w.WaitBelow(0) }},
	} {
		// WaitBelow allocates a channel if it waits.
		if strings.HasPrefix(name, "Send") {
			test.allowed = 1
		}
		if got := testing.AllocsPerRun(200, test.run); got > test.allowed {
			t.Errorf("%s: %v allocations, want at most %v", name, got, test.allowed)
		}
	}
}
