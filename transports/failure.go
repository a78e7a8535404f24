package transports

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Codes of dynmcp's own failures, outside the ranges of JSON-RPC and MCP.
const (
	CodeStartFailed  = 5101 // the upstream cannot be started or reached for the first time
	CodeExited       = 5102 // it ended while the call was in flight
	CodeTimeout      = 5103 // no answer by the deadline
	CodeProtocol     = 5104 // its output is not MCP
	CodeUnreachable  = 5105 // HTTP: no connection, or an error status
	CodeAuthRequired = 5106 // HTTP: a login is required
	CodeRateLimited  = 5107 // HTTP: 429, or 503 with Retry-After
	CodeBackingOff   = 5108 // it failed or ended repeatedly; not tried now
	CodeTooLarge     = 5109 // the answer is over max_message_bytes
	CodeOverloaded   = 5110 // too many requests are queued for it
	CodeShuttingDown = 5111 // dynmcp is shutting down
	CodeNoResources  = 5112 // the system denies dynmcp a file, a process or memory
	CodeNoHost       = 5113 // no host can answer the upstream's request
	CodeChanged      = 5114 // its tool differs from the one that the host was shown
	CodeNotPlaced    = 5115 // no replica of the cluster can run it now
	CodeNotApproved  = 5116 // its tool differs from the one that was approved
	CodeDenied       = 5117 // the policy of the config refuses the call
	CodeNotListed    = 5118 // no listed server has it, but some are not listed yet
	CodeAmbiguous    = 5119 // several servers have a resource or prompt of that name
)

// An Outcome says whether a failed call may have run.
type Outcome string

// The outcomes of a failed call.
const (
	NotSent  Outcome = "not_sent" // it did not reach the upstream
	Unknown  Outcome = "unknown"  // it may have run
	Executed Outcome = "done"     // it ran, its answer is lost
)

// A Failure explains why an upstream gave no answer.
type Failure struct {
	Upstream string
	Code     int64
	Outcome  Outcome
	Cause    error
	Stderr   string // a child's last lines
	Hint     string // what to do, if more specific than Advice
	Login    bool   // a person's login would fix it
	Personal bool   // its cause and its hint are for the user of the call alone, and Reserved keeps them
	Details  string // lines for the model, after everything else

	RetryAfter time.Duration // when a retry is worthwhile; 0 if unknown
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Upstream, f.Cause) }
func (f *Failure) Unwrap() error { return f.Cause }

// Text explains to a model what failed, whether the call may have run, and what to do next.
func (f *Failure) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v (%s)\n", f.Error(), f.outcomeText())
	fmt.Fprintf(&b, "hint: %s\n", f.Advice())
	if f.Stderr != "" {
		fmt.Fprintf(&b, "last lines of its stderr:\n%s\n", f.Stderr)
	}
	b.WriteString(f.Details)
	return strings.TrimRight(b.String(), "\n")
}

// reserved replaces causes that may contain a file name, an address or the output of a server,
// for hosts that must not see those.
var reserved = map[int64]string{
	CodeStartFailed:  "it cannot be started",
	CodeExited:       "it ended during the call",
	CodeProtocol:     "what it sent is not MCP",
	CodeUnreachable:  "it cannot be reached",
	CodeAuthRequired: "it wants a login",
	CodeRateLimited:  "it takes no calls for a while",
	CodeBackingOff:   "it failed repeatedly and is not tried now",
	CodeNoResources:  "dynmcp lacks the resources to start it",
	CodeNotPlaced:    "the cluster cannot serve it now",
}

// Reserved returns the failure as hosts of other users may see it: without stderr, and with a
// general cause if the full one may reveal something of a server or a system. The hint names
// reference, unless it is empty, as the key of the full cause in the log.
func (f *Failure) Reserved(reference string) *Failure {
	r := *f
	r.Stderr = ""
	if f.Personal {
		return &r
	}
	if cause, ok := reserved[f.Code]; ok {
		if f.RetryAfter > 0 {
			cause += fmt.Sprintf("; the next attempt is due in %s", f.RetryAfter.Truncate(100*time.Millisecond)+100*time.Millisecond)
		}
		r.Cause, r.Hint = errors.New(cause), ""
	}
	switch {
	case f.Code == CodeAuthRequired:
		r.Hint = fmt.Sprintf(`run "dynmcp login %s", or check its "headers" or its "auth" in the config`, f.Upstream)
	case f.Code == CodeTimeout && f.Outcome == NotSent: // the hint may name a folder
		r.Hint = ""
	}
	if reference != "" {
		r.Hint = r.Advice() + "; the log of dynmcp has the cause under the reference " + reference
	}
	return &r
}

func (f *Failure) outcomeText() string { return f.Outcome.text() }

func (o Outcome) text() string {
	switch o {
	case NotSent:
		return "outcome not_sent: the call did not run"
	case Executed:
		return "outcome done: the call ran, its answer is lost"
	}
	return "outcome unknown: the call may have run"
}

// Wire returns the failure as a JSON-RPC error.
func (f *Failure) Wire() *wire.Error {
	data, _ := json.Marshal(struct { // texts and numbers always marshal
		Source     string  `json:"source"`
		Server     string  `json:"server"`
		Outcome    Outcome `json:"outcome"`
		RetryAfter int64   `json:"retry_after_ms,omitempty"`
		Hint       string  `json:"hint,omitempty"`
		Stderr     string  `json:"stderr_tail,omitempty"`
	}{"dynmcp", f.Upstream, f.Outcome, f.RetryAfter.Milliseconds(), f.Advice(), f.Stderr})
	message := f.message()
	if f.Details != "" {
		message += "\n" + f.Details
	}
	return &wire.Error{Code: f.Code, Message: message, Data: data}
}

// readable is how many characters of an error's message every host shows its model.
const readable = 200

// message is the text of a JSON-RPC error. It holds the outcome and the advice because most
// hosts show models no other member. A cause for which there is no room comes last.
func (f *Failure) message() string {
	if short := fmt.Sprintf("%v (%s); %s", f.Error(), f.outcomeText(), f.Advice()); utf8.RuneCountInString(short) <= readable {
		return short
	}
	return fmt.Sprintf("%s: %s; %s; cause: %v", f.Upstream, f.outcomeText(), f.Advice(), f.Cause)
}

// LookFirst is the advice for a call that may have run.
const LookFirst = "check whether it took effect before retrying"

// TriesAgain ends the advice about a failed start, unless no start follows.
const TriesAgain = "; the next call tries again"

// Advice says what to do about the failure.
func (f *Failure) Advice() string {
	switch sent := f.Outcome != NotSent; {
	case f.Hint != "":
		return f.Hint
	case f.Code == CodeStartFailed:
		return "correct what it complains of, or its entry in the config" + TriesAgain
	case f.Code == CodeTimeout && sent:
		return LookFirst + `; if it needs longer, raise the server's "timeout"`
	case f.Code == CodeTimeout:
		return `if it needs longer to start, raise its "load_timeout"` + TriesAgain
	case f.Code == CodeTooLarge && sent:
		return `ask for less, or raise the server's "max_message_bytes"`
	case f.Code == CodeTooLarge:
		return `send less, or raise the server's "max_message_bytes"`
	case f.Code == CodeBackingOff:
		return "call again when it is due"
	case f.Code == CodeProtocol && sent:
		return LookFirst + "; the server's answer is invalid"
	case f.Code == CodeProtocol:
		return "the server breaks the protocol: see whether another version of it does better"
	case sent:
		return LookFirst + "; the next call reconnects if needed"
	case f.Code == CodeUnreachable:
		return `see that it runs and that its "url" is right` + TriesAgain
	case f.Code == CodeOverloaded:
		return "call again when it has caught up"
	case f.Code == CodeNotPlaced:
		return "call again when another replica runs it; if none ever does, check the cluster"
	}
	return "the next call tries again"
}

// CutOff returns the failure of a call that the shutdown of dynmcp interrupts.
func CutOff(upstream string, outcome Outcome) *Failure {
	f := &Failure{
		Upstream: upstream,
		Code:     CodeShuttingDown,
		Outcome:  outcome,
		Cause:    errors.New("dynmcp is shutting down"),
		Hint:     "call again when dynmcp runs again",
	}
	if outcome != NotSent {
		f.Hint = LookFirst
	}
	return f
}

// ShuttingDown is CutOff for a request whose upstream is not known.
func ShuttingDown(outcome Outcome) *wire.Error {
	return OutcomeError(CodeShuttingDown, "dynmcp is shutting down", outcome)
}

// OutcomeError returns an error of dynmcp that says whether the refused request may have run.
// The codes of JSON-RPC say in themselves that it did not.
func OutcomeError(code int64, text string, outcome Outcome) *wire.Error {
	if code > 0 || outcome != NotSent {
		text += " (" + outcome.text() + ")"
	}
	return &wire.Error{Code: code, Message: text, Data: fmt.Appendf(nil, `{"source":"dynmcp","outcome":%q}`, outcome)}
}

// InvalidParams returns the error for a request that was not sent because of its params.
func InvalidParams(format string, args ...any) *wire.Error {
	return OutcomeError(wire.CodeInvalidParams, fmt.Sprintf(format, args...), NotSent)
}

// WireError returns err as a JSON-RPC error: a peer's error unchanged, a Failure with its
// code, any other error as an internal error.
func WireError(err error) *wire.Error {
	if rpc, ok := errors.AsType[*wire.Error](err); ok {
		return rpc
	}
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Wire()
	}
	return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
}

// Printable returns at most max bytes of what a peer sent, fit for a log or a
// terminal: control and formatting characters are escaped.
func Printable(text []byte, max int) string {
	var b strings.Builder
	for _, r := range string(text[:min(len(text), max)]) {
		if r != '\n' && !unicode.IsPrint(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	if len(text) > max {
		b.WriteString("…")
	}
	return b.String()
}
