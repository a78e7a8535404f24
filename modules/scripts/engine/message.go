// Package engine runs scripts in a process of its own: a program that imports package script and
// was executed as a child of its [script.Pool].
//
// It is entered from an init function and never returns. It reads requests from stdin and
// writes events to stdout, a line of JSON each. One goroutine reads, and one runs the script,
// because a runtime of goja must not be shared.
package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Name makes a program an engine if it is its only argument.
const Name = "dynmcp-script"

// MaxLine is the longest line in either direction: a result with its envelope.
const MaxLine = 16<<20 + 64<<10

// Memory is how much data an engine may use, in bytes, on a system that can limit it.
const Memory = 256 << 20

// A Request is sent to an engine: a script to run, or the answer to a call.
type Request struct {
	Run    *Run    `json:"run,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
}

// A Run is a script, the body of an async function in JavaScript, and its limits.
type Run struct {
	Source string   `json:"source"`
	Args   []string `json:"args"` // value of the global args
	// Servers are the names in tools. One that is not an identifier can also be written with _ for
	// each invalid character, if that is unambiguous.
	Servers []string      `json:"servers"`
	Calls   int           `json:"calls"`   // of tools, resources, searches and descriptions
	AtOnce  int           `json:"at_once"` // calls in flight; other calls wait
	Output  int           `json:"output"`  // bytes that are printed; the rest is dropped and counted
	CPU     time.Duration `json:"cpu"`
}

// An Answer is the result of a call.
type Answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Blobs  []Blob          `json:"blobs,omitempty"`
	Error  *Failure        `json:"error,omitempty"`
}

// A Blob represents an image or a blob of a result, which stays with the parent.
type Blob struct {
	Index int    `json:"index"` // in content, or in contents
	ID    int    `json:"id"`
	Type  string `json:"type"`
	MIME  string `json:"mime"`
	Size  int    `json:"size"`
}

// An Event is sent by an engine: a call, printed text, the end of the script, or its memory. It is
// empty when a script goes on.
type Event struct {
	Call    *Call  `json:"call,omitempty"`
	Printed string `json:"printed,omitempty"`
	Done    *Done  `json:"done,omitempty"`
	Sleeps  bool   `json:"sleeps,omitempty"` // the script waits for a timer alone, until the next event without Memory
	Memory  int64  `json:"memory,omitempty"` // bytes that the process uses, or may use soon
}

// Kinds of calls.
const (
	Tool     = "call"
	Search   = "search"
	Describe = "describe"
	Resource = "resource"
)

// A Call is a call that a script makes. IDs increase while an engine runs. The name of a tool is
// "server/tool" as in the script: of tools.a.b_c it is "a/b_c", and the tool may be b-c.
type Call struct {
	ID   int             `json:"id"`
	Kind string          `json:"kind"`
	Name string          `json:"name"`           // of a tool, the words of a search, or a URI
	Args json.RawMessage `json:"args,omitempty"` // an object, of a tool
}

// Done is the end of a script.
type Done struct {
	Value   json.RawMessage `json:"value,omitempty"` // the returned value
	Blobs   []int           `json:"blobs,omitempty"` // ids of the blobs in Value
	Failure *Failure        `json:"failure,omitempty"`
	Dropped int             `json:"dropped,omitempty"` // bytes printed beyond the limit
	Worn    bool            `json:"worn,omitempty"`    // the engine should be replaced
}

// Outcomes of a call: see package transports.
const (
	Ran     = "done"
	NotSent = "not_sent"
	Unknown = "unknown"
)

// A Failure is the error of a call, which a script can catch, or the error that ended a script.
type Failure struct {
	Message string `json:"message"` // with the name of the JavaScript error
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Line    int    `json:"line,omitempty"`   // of the script, from 1; 0 if unknown
	Column  int    `json:"column,omitempty"` // from 1
}

func (f *Failure) Error() string {
	if f.Line == 0 {
		return f.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message)
}

// Write writes a Request or an Event in one piece.
func Write(w io.Writer, message any) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false) // escapes cost tokens
	return lines.Encode(message)
}
