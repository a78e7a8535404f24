// Package activity keeps a record of calls: a line of JSON for each, in files of one
// directory that all runs of a user share. Calls do not wait for the disk.
package activity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Line is the record of one call.
type Line struct {
	Time      time.Time `json:"time"` // when the call began
	Run       string    `json:"run"`
	Session   string    `json:"session"`
	Host      string    `json:"host,omitempty"` // the name that it reports
	Principal string    `json:"principal,omitempty"`
	Surface   string    `json:"surface,omitempty"`
	Server    string    `json:"server,omitempty"` // "" for a tool of dynmcp's own
	Tool      string    `json:"tool,omitempty"`   // the server's name for it
	Method    string    `json:"method,omitempty"` // unless it is a call of a tool
	Outcome   string    `json:"outcome"`          // done, not_sent or unknown
	Kind      string    `json:"kind"`             // how it ended, as in the metrics
	Rule      int       `json:"rule,omitempty"`   // of the policy that refused it
	MS        float64   `json:"ms"`
	StartMS   float64   `json:"start_ms,omitempty"` // the part of it before the server was ready
	BytesIn   int       `json:"bytes_in"`           // of the params
	BytesOut  int       `json:"bytes_out"`          // of the result
	TokensIn  int       `json:"tokens_in"`          // of the arguments, estimated
	TokensOut int       `json:"tokens_out"`         // of the result, estimated
	Digest    string    `json:"digest,omitempty"`
	Queries   int       `json:"queries,omitempty"` // of a search
	Shown     int       `json:"shown,omitempty"`   // definitions that its answer shows

	Query     json.RawMessage `json:"query,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Dropped   int64           `json:"dropped,omitempty"` // lines that were lost before this one

	Credential string `json:"credential,omitempty"` // what of its user the server was called with, by name
}

// IsBuiltin reports whether a line is about a tool of dynmcp's own.
func (l *Line) IsBuiltin() bool { return l.Server == "" && l.Tool != "" }

// Failed reports whether the call failed.
func (l *Line) Failed() bool { return l.Kind != "ok" }

// Name returns the name of the tool for display.
func (l *Line) Name() string {
	switch {
	case l.IsBuiltin():
		return l.Tool
	case l.Tool == "":
		return strings.TrimPrefix(l.Server+" "+l.Method, " ")
	}
	return l.Server + "/" + l.Tool
}

// append appends a line in JSON. Reflection would take most of the writer's time.
func (l *Line) append(to []byte) []byte {
	to = append(l.Time.AppendFormat(append(to, `{"time":"`...), time.RFC3339Nano), '"')
	key := func(key string) { to = append(append(append(to, `,"`...), key...), `":`...) }
	for _, m := range [...]struct{ key, value string }{
		{"run", l.Run}, {"session", l.Session}, {"host", l.Host}, {"principal", l.Principal}, {"surface", l.Surface}, {"server", l.Server},
		{"tool", l.Tool}, {"method", l.Method}, {"outcome", l.Outcome}, {"kind", l.Kind}, {"credential", l.Credential}, {"digest", l.Digest},
	} {
		if m.value != "" {
			key(m.key)
			to = wire.AppendQuote(to, m.value)
		}
	}
	key("ms")
	to = strconv.AppendFloat(to, l.MS, 'f', -1, 64)
	if l.StartMS != 0 {
		key("start_ms")
		to = strconv.AppendFloat(to, l.StartMS, 'f', -1, 64)
	}
	for i, m := range [...]struct {
		key   string
		value int64
	}{
		{"bytes_in", int64(l.BytesIn)}, {"bytes_out", int64(l.BytesOut)}, {"tokens_in", int64(l.TokensIn)}, {"tokens_out", int64(l.TokensOut)},
		{"rule", int64(l.Rule)}, {"queries", int64(l.Queries)}, {"shown", int64(l.Shown)}, {"dropped", l.Dropped},
	} {
		if m.value != 0 || i < 4 {
			key(m.key)
			to = strconv.AppendInt(to, m.value, 10)
		}
	}
	for _, m := range [...]struct {
		key   string
		value json.RawMessage
	}{{"query", l.Query}, {"arguments", l.Arguments}, {"result", l.Result}} {
		if m.value != nil {
			key(m.key)
			b := bytes.NewBuffer(to)
			_ = json.Compact(b, m.value) // it is valid
			to = b.Bytes()
		}
	}
	return append(to, '}')
}

// LineOf returns the line for a call, without what the writer computes.
func LineOf(end *event.Call) Line {
	l := Line{
		Time: end.Began.UTC(), Session: end.From.ID, Host: end.From.Host, Principal: end.From.User, Surface: end.Surface, Server: end.Upstream, Tool: end.Tool,
		Outcome: string(end.Outcome), Kind: end.Kind, Rule: end.Rule, MS: milliseconds(end.End.Sub(end.Began)), BytesIn: end.Asked, BytesOut: end.Answered,
		Queries: end.Queries, Shown: end.Shown, Credential: end.Credential,
	}
	if wait := end.Sent.Sub(end.Began); !end.Sent.IsZero() && wait >= time.Millisecond {
		l.StartMS = milliseconds(wait)
	}
	if end.Method != "tools/call" {
		l.Method = end.Method
	}
	return l
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// EntryOf returns the entry for a call, with sizes set without its arguments and its result.
func EntryOf(end *event.Call, sizes bool) Entry {
	if sizes {
		return Entry{Line: LineOf(end), User: end.From.Share}
	}
	return Entry{Line: LineOf(end), User: end.From.Share, Input: end.Arguments, Output: bytes.Clone(end.Result[:min(len(end.Result), mostOutput)])}
}

// An Entry is a call before it is written. The writer computes the expensive fields.
type Entry struct {
	Line
	User   string          // whose share of the record it takes
	Input  json.RawMessage // the arguments; they must not change
	Output []byte          // the beginning of the result, or all of it; nil if its size is all that is recorded of it
}

// bytesPerToken is that of JSON, for calls of which only the size is known.
const bytesPerToken = 4

// Limits for one call.
const (
	mostOutput = 16 << 10 // bytes of a result that are inspected
	maxKept    = 16 << 10 // bytes of arguments or of a result that are written
)

// finish computes the fields of a line that describe arguments and result.
func (e *Entry) finish(keep Keep) {
	l := &e.Line
	if keep.Sizes {
		l.TokensIn, l.TokensOut = l.BytesIn/bytesPerToken, l.BytesOut/bytesPerToken
		return
	}
	if e.Input != nil {
		sum := sha256.Sum256(e.Input)
		l.Digest = "sha256:" + hex.EncodeToString(sum[:])
		l.TokensIn = estimate(string(e.Input[:min(len(e.Input), mostOutput)]), len(e.Input))
	}
	if len(e.Output) < e.BytesOut {
		l.TokensOut = estimate(string(e.Output), e.BytesOut)
	} else {
		l.TokensOut = Tokens(e.Output)
	}
	if keep.Arguments {
		l.Arguments = keep.text(e.Input, len(e.Input))
	}
	if keep.Results {
		l.Result = keep.text(e.Output, e.BytesOut)
	}
	if keep.Queries && e.Queries > 0 {
		l.Query = keep.text(wire.Get(e.Input, "query"), 0)
	}
}

// Tokens estimates the tokens of a result: of its texts, or of all of it if it has none.
func Tokens(result []byte) int {
	var texts []string
	for part := range wire.Elements(wire.Get(result, "content")) {
		if text, ok := wire.Text(wire.Get(part, "text")); ok {
			texts = append(texts, text)
		}
	}
	if texts == nil {
		return tokens.Count(string(result))
	}
	return tokens.Count(strings.Join(texts, "\n"))
}

// estimate returns the number of tokens of a text whose beginning is known.
func estimate(text string, size int) int {
	if text == "" {
		return 0
	}
	return tokens.Count(text) * size / len(text)
}

// Keep says which optional parts of a call are written.
type Keep struct {
	Sizes                       bool // of arguments and results nothing but their size is looked at
	Arguments, Results, Queries bool
	Redact                      func(text string, whole bool) string // removes secrets from a text, which may be truncated
}

// text returns a part of a call for the record: redacted, as JSON if it is complete, otherwise
// its beginning as a string. size is the size of the complete part, 0 if raw is complete.
func (k Keep) text(raw []byte, size int) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	whole := len(raw) >= size && len(raw) <= maxKept
	safe := k.Redact(string(raw[:min(len(raw), maxKept)]), whole)
	if whole && json.Valid([]byte(safe)) {
		return json.RawMessage(safe)
	}
	return wire.Quote(safe)
}
