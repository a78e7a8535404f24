// Package engine is the process that runs scripts: what a program that imports package script
// does when it was executed as a child of its [script.Pool].
//
// It is entered from an init function and never returns. It reads requests from stdin and
// writes events to stdout, a line of JSON each. A goroutine reads, one runs the script: a
// runtime of goja belongs to that alone.
package engine

import (
	"encoding/json"
	"io"
)

// Name makes a program an engine if it is its only argument.
const Name = "dynmcp-script"

// MaxLine is the longest line in either direction: a result, and what stands around it.
const MaxLine = 16<<20 + 64<<10

// Memory is what an engine may use, in bytes of data, on a system that can limit it.
const Memory = 256 << 20

// A Request is sent to an engine: a script to run, or the answer to a call.
type Request struct {
	Run    *Run    `json:"run,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
}

// A Run is a script and its limits.
type Run struct {
	Source  string   `json:"source"`
	Args    []string `json:"args"`
	Servers []string `json:"servers"`
	Calls   int      `json:"calls"`
	AtOnce  int      `json:"at_once"`
	Output  int      `json:"output"`
	CPU     int64    `json:"cpu"` // milliseconds
}

// An Answer has what a call led to.
type Answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Blobs  []Blob          `json:"blobs,omitempty"`
	Error  *Failure        `json:"error,omitempty"`
}

// A Blob stands for an image or a blob of a result, which stays with the parent.
type Blob struct {
	Index int    `json:"index"` // in content, or in contents
	ID    int    `json:"id"`
	Type  string `json:"type"`
	MIME  string `json:"mime"`
	Size  int    `json:"size"`
}

// An Event is sent by an engine: a call, what was printed, or the end of the script.
type Event struct {
	Call    *Call  `json:"call,omitempty"`
	Printed string `json:"printed,omitempty"`
	Done    *Done  `json:"done,omitempty"`
}

// Kinds of calls.
const (
	Tool     = "call"
	Search   = "search"
	Describe = "describe"
	Resource = "resource"
)

// A Call asks for one. IDs grow as long as an engine runs.
type Call struct {
	ID   int             `json:"id"`
	Kind string          `json:"kind"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Done is the end of a script.
type Done struct {
	Value   json.RawMessage `json:"value,omitempty"` // what it returned
	Blobs   []int           `json:"blobs,omitempty"` // those in it
	Failure *Failure        `json:"failure,omitempty"`
	Dropped int             `json:"dropped,omitempty"` // bytes printed beyond the limit
	Worn    bool            `json:"worn,omitempty"`    // the engine should be replaced
}

// A Failure is an error: of a call, or the end of a script.
type Failure struct {
	Message string `json:"message"`
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Write writes a Request or an Event in one piece.
func Write(w io.Writer, message any) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false) // what is longer costs tokens
	return lines.Encode(message)
}
