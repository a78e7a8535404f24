// Package script runs JavaScript that a model wrote, in a process that can only ask us for
// calls.
//
// [Pool.Run] hands a script to a child: this program, executed again, under the guard and
// under the restrictions of package sandbox. The child has no file, no network and no environment,
// and the kernel limits its memory and its processor time. It writes lines of JSON to its
// stdout, in which it asks for calls and prints; an [Answerer] answers. Its output is not
// trusted: sizes, counts and ids are checked, and a child that breaks the protocol is killed.
//
// Package engine runs inside the child. It is entered from an init function: every program that
// imports this package can be its own child, test binaries too.
package script

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
)

// Types of the protocol with an engine.
type (
	Call    = engine.Call
	Failure = engine.Failure
)

// A Script is a script and its limits. Pool.Run sets CPU.
type Script struct {
	engine.Run
	Time time.Duration // limit of its running time; [StopClock] stops that clock
	User string        // the user whose share of the scripts that run at a time it takes
	// Memory is of the account that the memory of its process counts for. Nil counts nothing.
	Memory *membudget.Reservation
}

// leastMemory is the memory of a process whose script does nothing.
const leastMemory = 12 << 20

const tooMuch = `with it, scripts and calls of this user would hold more than they may of "max_held_bytes"`

// An Answerer answers the calls of a script: of a tool or a resource with the result that the
// server sent, which must not be changed afterwards, of a search or a description with a text. A
// result with isError is a result. Each call has a goroutine of its own; at most AtOnce run
// together. The Answerer must return soon after its context is done, which happens when the
// script ends. It may pass the context to [StopClock].
type Answerer func(context.Context, Call) (json.RawMessage, *Failure)

// A CallRecord is a call of a tool, or a read of a resource, that a script began.
type CallRecord struct {
	Name    string // "server/tool", or a URI
	Outcome string
	Error   string // "" if it succeeded; also set for a result with isError
	Took    time.Duration
	Cut     bool // the script ended before it
}

// A Result is the result of a script. With an error of Run, only Printed, Dropped and Calls are
// set.
type Result struct {
	// Content are the blocks of an MCP result: the returned value as text (a string as it is,
	// other values in JSON), and then the images and blobs in it. It is empty if the script
	// returned nothing.
	Content []json.RawMessage
	// Value is the returned value in JSON, with a text in place of each image and blob. It is
	// nil if the script returned nothing, or only images and blobs.
	Value   json.RawMessage
	Printed string
	Dropped int // bytes that were printed beyond Output
	Calls   []CallRecord
}

// MaxResult is the size of the largest result that a script gets from a call, and of the
// largest that it returns, without images and blobs.
const MaxResult = 16 << 20

// Ran describes the calls of a script, for a model that must not repeat them blindly: "2 calls
// ran: github/create_issue (done), github/list_issues (unknown: the server ended)".
func (r *Result) Ran() string {
	sent := len(slices.DeleteFunc(slices.Clone(r.Calls), func(c CallRecord) bool { return c.Outcome == engine.NotSent }))
	text := map[int]string{0: "no call ran", 1: "1 call ran"}[sent]
	if text == "" {
		text = fmt.Sprintf("%d calls ran", sent)
	}
	if len(r.Calls) > 0 {
		text += ": " + list(r.Calls)
	}
	return text
}

// Cut describes the calls that the script did not wait for, "" if there are none.
func (r *Result) Cut() string {
	cut := slices.DeleteFunc(slices.Clone(r.Calls), func(c CallRecord) bool { return !c.Cut })
	if len(cut) == 0 {
		return ""
	}
	return "The script ended before these calls, which were cancelled. Await them: " + list(cut)
}

// list names calls with their outcomes.
func list(calls []CallRecord) string {
	const most, longest = 50, 150
	var all []string
	for _, c := range calls[:min(len(calls), most)] {
		outcome := c.Outcome
		if c.Error != "" {
			first, _, _ := strings.Cut(c.Error, "\n")
			outcome += ": " + display.Cut(display.Fold(first), longest)
		}
		all = append(all, fmt.Sprintf("%s (%s)", display.Cut(display.Fold(c.Name), longest), outcome))
	}
	if more := len(calls) - most; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}
