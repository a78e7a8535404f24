// Package script runs JavaScript that a model wrote, in a process that can do nothing but
// ask us for calls.
//
// [Pool.Run] hands a script to a child: this very program, executed again, under the guard
// and within the walls of package sandbox. The child has no file, no network and no
// environment, and the kernel limits its memory and its processor time. It writes lines of
// JSON to its stdout, in which it asks for calls and prints; [Calls] answers. Nothing that
// it writes is trusted: sizes, counts and ids are checked, and a child that breaks the
// protocol is killed.
//
// Package engine is what runs inside the child. It is entered from an init function:
// whatever program imports this package is its own child, the test binaries too.
package script

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Script is the body of an async function in JavaScript.
type Script struct {
	Source string
	Args   []string // what the script has as args
	// Servers are the names that tools has. One that is no identifier can also be written
	// with _ for each character that does not fit, if that names one server alone.
	Servers []string
	Limits  Limits
}

// Limits of a script. Zero fields have the values of [DefaultLimits].
type Limits struct {
	Calls  int           // of tools, resources, searches and descriptions
	AtOnce int           // calls in flight; the script waits with others
	Time   time.Duration // without the time for which [StopClock] has stopped the clock
	Output int           // bytes that are printed; the rest is dropped, and counted
}

// DefaultLimits are those of a config that says nothing.
var DefaultLimits = Limits{Calls: 200, AtOnce: 16, Time: 5 * time.Minute, Output: 64 << 10}

// Calls answers what a script asks. Its functions are called on goroutines of their own, at
// most Limits.AtOnce together, and must return soon after their context is done: that is so
// when the script has ended. They may hand the context to [StopClock].
type Calls struct {
	// Call calls a tool, and returns the result as the server sent it, which must not be
	// changed afterwards. The name is "server/tool" as the script has it: of tools.a.b_c
	// it is "a/b_c", and the tool may be b-c. args is an object. A result with isError is
	// a result.
	Call func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, *CallError)
	// Search and Describe return texts.
	Search, Describe func(ctx context.Context, text string) (string, *CallError)
	// Resource returns the result of resources/read.
	Resource func(ctx context.Context, uri string) (json.RawMessage, *CallError)
}

// Outcomes of a call: see package transports.
const (
	Done    = "done"
	NotSent = "not_sent"
	Unknown = "unknown"
)

// A CallError is what a script catches.
type CallError struct {
	Message string `json:"message"`
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

func (e *CallError) Error() string { return e.Message }

// A CallRecord is a call of a tool, or a read of a resource, that a script began.
type CallRecord struct {
	Name    string // "server/tool", or a URI
	Outcome string
	Error   string // "" is none; that of an isError result too
	Took    time.Duration
}

// A Result is what a script returned. Run gives it with an error, too: then Printed and Calls
// are set.
type Result struct {
	// Content are blocks of an MCP result: what was returned as text, a string as it is
	// and all else in JSON, and then the images and blobs in it. It is at most MaxResult
	// long. A script that returned nothing has none.
	Content []json.RawMessage
	// Value is what was returned in JSON, with a line of text for each image and blob. It
	// is nil if the script returned nothing, or nothing but images and blobs.
	Value   json.RawMessage
	Printed string
	Dropped int // bytes that were printed beyond Limits.Output
	Calls   []CallRecord
}

// MaxResult is the size of the largest result that a script gets from a call, and of the
// largest that it returns, without images and blobs.
const MaxResult = 16 << 20

// An Error is the end of a script that was not its return. Errors of Run that are no Error
// are the caller's or ours: the context's, or a child that could not be started.
type Error struct {
	Message string // with the name of the JavaScript error
	Line    int    // of the script, from 1; 0 is not known
	Column  int    // from 1
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Ran says which calls a script made, for a model that must not repeat them blindly: "2 calls
// ran: github/create_issue (done), github/list_issues (unknown: the server ended)".
func (r *Result) Ran() string {
	if len(r.Calls) == 0 {
		return "no call ran"
	}
	const most = 50
	var all []string
	for i, c := range r.Calls {
		if i == most {
			all = append(all, fmt.Sprintf("and %d more", len(r.Calls)-most))
			break
		}
		said := c.Outcome
		if c.Error != "" {
			said += ": " + c.Error
		}
		all = append(all, fmt.Sprintf("%s (%s)", c.Name, said))
	}
	noun := "calls"
	if len(r.Calls) == 1 {
		noun = "call"
	}
	return fmt.Sprintf("%d %s ran: %s", len(r.Calls), noun, strings.Join(all, ", "))
}
