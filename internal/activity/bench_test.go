package activity

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// BenchmarkWrite measures what a call of 100 B costs the writer.
func BenchmarkWrite(b *testing.B) {
	l := newLog(options(b.TempDir(), &bytes.Buffer{}))
	result := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("an answer of words, ", 5) + `"}]}`)
	input := json.RawMessage(`{"text":"` + strings.Repeat("an answer of words, ", 5) + `"}`)
	e := Entry{Line: Line{
		Time: time.Now().UTC(), Session: "s", Host: "claude-code", Surface: "discover", Server: "up", Tool: "echo", Kind: "ok", Outcome: "done",
		MS: 0.071, BytesIn: 140, BytesOut: len(result),
	}, Input: input, Output: result}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Add(e)
		if i%1000 == 999 {
			l.flush()
		}
	}
}

// BenchmarkWriteSizes is BenchmarkWrite for a record that nobody asked for.
func BenchmarkWriteSizes(b *testing.B) {
	o := options(b.TempDir(), &bytes.Buffer{})
	o.Keep.Sizes = true
	l := newLog(o)
	e := call("echo")
	e.Input = nil
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Add(e)
		if i%1000 == 999 {
			l.flush()
		}
	}
}
