// Package scripts runs the scripts of hosts: it connects package script, whose child processes
// request calls, to a session.
//
// Each call of a script is a request inside that of run_script, and is handled like a use_tool. A
// host of the handshake era is asked while its request waits. A host of the stateless era gets
// the questions of a script in the result of its request, and the script waits for the request
// with the answers:
//
//	a call asks ─► Run.answered ─► Run.park ─► the host has its result, and a sealed state
//	the host's next request ─► Env.resume ─► the calls are sent again, with their answers
package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	surfacescript "github.com/dynmcp/dynmcp/aggregator/internal/surface/script"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/script"
	"github.com/dynmcp/dynmcp/internal/script/engine"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// An Env is shared by all scripts. Its fields are set before the first script starts.
type Env struct {
	Work   *work.Group
	Log    *slog.Logger
	States *ask.States
	Calls  Calls
	Budget *membudget.Budget // of the memory of scripts

	walled, bestEffort script.Pool
	waiting            ask.Waiting[*Run] // for the answers of their hosts
}

// Calls has the calls whose hosts are asked.
type Calls interface {
	// Forget drops the question in a result, which no host will answer.
	Forget(result json.RawMessage)
}

// Close ends the processes. No script may be running.
func (env *Env) Close() {
	env.walled.Close()
	env.bestEffort.Close()
}

// Drop gives up the scripts of a session that wait for answers to the request by; nil is any request
// of the session.
func (env *Env) Drop(s *sessions.Session, reason json.RawMessage, by func(r *host.Request) bool) {
	env.waiting.Abandon(reason, func(run *Run, r *host.Request) bool { return run.session == s && (by == nil || by(r)) })
}

// A Caller is a request of a host that runs a script.
type Caller struct {
	Session *sessions.Session
	Request *host.Request
	Params  json.RawMessage // a copy
	Config  *schema.Config
	Servers []string
	Host    Host

	meta json.RawMessage // of the inner requests
}

// A Host makes the requests of a script.
type Host interface {
	// Answer answers the request with the result of the script, whose texts are shortened to so
	// many characters, once.
	Answer(result json.RawMessage, most int)
	// Send makes a request inside Request; to says how a tool is called, nil for other requests.
	Send(r *host.Request, to *surface.Target)
	// Part returns the session interface for an inner request.
	Part(r *host.Request) surface.Session
}

// A Run is a running script.
type Run struct {
	env     *Env
	session *sessions.Session // of the first request
	limits  schema.Scripts
	allowed toolglob.Filter
	cancel  context.CancelFunc
	made    chan struct{} // holds a token after a call has ended that the host was not told about

	mu       sync.Mutex
	by       *Caller // nil while the host is asked
	inFlight int
	asking   []*inner // with questions for the host
	queued   []*inner // begun while it is asked
	due      *time.Timer
	last     int    // number of an inner request
	calls    int    // ended calls
	name     string // of the last ended call
	notes    []string
	outcome  json.RawMessage // nil until the script has ended
}

// Start runs a script for a request, unless the request continues one.
func (env *Env) Start(by *Caller, source string, args []string) {
	if env.resume(by) {
		return
	}
	limits := by.Config.ScriptLimits()
	ctx, cancel := context.WithCancel(env.Work.Context())
	run := &Run{
		env: env, session: by.Session, limits: limits, allowed: surfacescript.Allowed(limits.Tools),
		cancel: cancel, made: make(chan struct{}, 1),
	}
	pool := &env.walled
	if limits.BestEffort {
		pool = &env.bestEffort
	}
	user := by.Session.Share()
	s := script.Script{Time: limits.Time, User: user, Memory: env.Budget.Open(user, nil), Run: engine.Run{
		Source: source, Args: args, Servers: by.Servers, Calls: limits.Calls, AtOnce: limits.AtOnce, Output: limits.Output,
	}}
	run.attach(by, nil)
	env.Work.Answer(by.Request, func() {
		defer cancel()
		var progress sync.WaitGroup
		progress.Go(func() { env.Work.Guard(func() { run.report(ctx) }) })
		result, err := pool.Run(ctx, s, run.answer)
		cancel()
		progress.Wait()
		run.finish(result, err)
	})
}

// attach makes by the request of the script; responses are the host's answers in it.
func (run *Run) attach(by *Caller, responses json.RawMessage) {
	by.meta = wire.Get(transports.DeleteMeta(by.Params, "progressToken"), "_meta")
	if !by.Request.OnCancel(func(json.RawMessage) { run.cancel() }) {
		run.cancel()
	}
	run.mu.Lock()
	run.by = by
	asking, queued, outcome := run.asking, run.queued, run.outcome
	run.asking, run.queued = nil, nil
	run.mu.Unlock()
	if outcome != nil {
		by.reply(run, outcome)
		return
	}
	for _, in := range asking {
		run.begin(in, in.next(responses))
	}
	for _, in := range queued {
		run.begin(in, in.params)
	}
}

// finish answers the request with the outcome of the script, or stores it for the request that
// continues it.
func (run *Run) finish(result *script.Result, err error) {
	run.mu.Lock()
	if run.due != nil {
		run.due.Stop()
	}
	run.outcome = render(result, err, run.notes)
	by, outcome, asking := run.by, run.outcome, run.asking
	run.asking = nil
	run.mu.Unlock()
	for _, in := range asking {
		run.env.Calls.Forget(in.asked)
	}
	if by != nil {
		by.reply(run, outcome)
	}
}

func (by *Caller) reply(run *Run, outcome json.RawMessage) {
	by.Host.Answer(outcome, run.limits.Output)
}

// Abandon ends a script whose host has not answered.
func (run *Run) Abandon(json.RawMessage) { run.cancel() }

// report sends the host, if it wants progress, the number of ended calls.
func (run *Run) report(ctx context.Context) {
	for {
		select {
		case <-run.made:
		case <-ctx.Done():
			return
		}
		run.mu.Lock()
		by, calls, name := run.by, run.calls, run.name
		run.mu.Unlock()
		if by == nil {
			continue
		}
		if token := wire.Get(by.Request.Meta, "progressToken"); token != nil {
			by.Request.Peer.Notify("notifications/progress", progress(token, calls, name))
		}
	}
}

// Members of _meta. In the result: the calls that were made. In a block of content: that the script
// printed it.
const (
	MetaCalls   = "dynmcp/calls"
	MetaPrinted = "dynmcp/printed"
)

// quoted begins each line that a script has printed: a line of dynmcp does not begin so.
const quoted = "> "

// quoteLines marks all lines of a text of the script but the first.
func quoteLines(text string) string {
	return strings.NewReplacer("\r\n", "\n"+quoted, "\n", "\n"+quoted, "\r", "\n"+quoted).Replace(text)
}

// render returns the result of run_script: the printed text, the returned value, and notes. An error
// says where it occurred, and which calls ran.
func render(r *script.Result, err error, notes []string) json.RawMessage {
	var blocks []json.RawMessage
	if r.Printed != "" || r.Dropped > 0 {
		printed := ""
		if r.Printed != "" {
			printed = quoted + quoteLines(strings.TrimSuffix(r.Printed, "\n"))
		}
		if r.Dropped > 0 {
			printed = strings.TrimPrefix(fmt.Sprintf("%s\n[%d more bytes were printed]", printed, r.Dropped), "\n")
		}
		blocks = append(blocks, fmt.Appendf(nil, `{"type":"text","text":%s,"_meta":{"%s":true}}`, wire.Quote(printed), MetaPrinted))
	}
	for _, block := range r.Content { // of a server, or of the script
		blocks = append(blocks, transports.DeleteMeta(block, MetaPrinted))
	}
	switch {
	case err != nil:
		blocks = append(blocks, results.TextItem(fmt.Sprintf("The script failed. %s\n%s", quoteLines(err.Error()), r.Ran())))
	case len(blocks) == 0:
		blocks = append(blocks, results.TextItem("The script returned nothing."))
	}
	if cut := r.Cut(); err == nil && cut != "" {
		blocks = append(blocks, results.TextItem(cut))
	}
	for _, note := range notes {
		blocks = append(blocks, results.TextItem(note))
	}
	result := results.Of(blocks)
	if err != nil {
		result = wire.Set(result, "isError", []byte("true"))
	}
	if calls := callsOf(r); calls != nil {
		result = wire.Set(result, "_meta", fmt.Appendf(nil, `{"%s":%s}`, MetaCalls, calls))
	}
	return result
}

// callsOf returns the calls of a script for programs; nil if there are none.
func callsOf(r *script.Result) json.RawMessage {
	type record struct {
		Name    string `json:"name"`
		Outcome string `json:"outcome"`
		Error   string `json:"error,omitempty"`
		Took    int64  `json:"took_ms"`
	}
	var all []record
	for _, c := range r.Calls {
		all = append(all, record{c.Name, c.Outcome, c.Error, c.Took.Milliseconds()})
	}
	if all == nil {
		return nil
	}
	out, _ := json.Marshal(all) // texts and numbers always marshal
	return out
}

func progress(token json.RawMessage, calls int, name string) json.RawMessage {
	noun := "calls"
	if calls == 1 {
		noun = "call"
	}
	return fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"message":%s}`, token, calls, wire.Quote(fmt.Sprintf("%d %s made, the last %s", calls, noun, name)))
}
