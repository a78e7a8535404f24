// Package tool is the surface with the tool that runs scripts. It connects package script, whose child processes
// request calls, to a session.
//
// Each call of a script is a request inside that of run_script, and is handled like a use_tool. A
// host of the handshake era is asked while its request waits. A host of the stateless era gets
// the questions of a script in the result of its request, and the script waits for the request
// with the answers:
//
//	a call asks ─► running.answered ─► running.park ─► the host has its result, and a sealed state
//	the host's next request ─► env.start ─► the calls are sent again, with their answers
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// An env is shared by all scripts of a run.
type env struct {
	run                surface.Run
	walled, bestEffort script.Pool
}

func start(run surface.Run) surface.Maker { return &env{run: run} }

// Close ends the processes. No script may be running.
func (env *env) Close() {
	env.walled.Close()
	env.bestEffort.Close()
}

// A caller is a request of a host that runs a script.
type caller struct {
	surface.Long
	meta json.RawMessage // of the inner requests
}

// running is a script that runs.
type running struct {
	env     *env
	limits  schema.Scripts
	allowed toolglob.Filter
	cancel  context.CancelFunc
	made    chan struct{} // holds a token after a call has ended that the host was not told about

	mu       sync.Mutex
	by       *caller // nil while the host is asked
	inFlight int
	asking   []*inner // with questions that the host does not have yet
	parked   []*inner // with questions that it has
	queued   []*inner // begun while it is asked
	due      *time.Timer
	last     int    // number of an inner request
	calls    int    // ended calls
	name     string // of the last ended call
	notes    []string
	outcome  json.RawMessage // nil until the script has ended
}

// start runs a script for a request, unless the request continues one.
func (env *env) start(by *caller, limits schema.Scripts, source string, args []string) {
	parked, responses, over := by.Resume()
	if over {
		return
	}
	if run, ok := parked.(*running); ok {
		run.attach(by, responses)
		return
	}
	var servers []string
	for _, server := range by.View().Servers() {
		servers = append(servers, server.Name)
	}
	ctx, cancel := context.WithCancel(env.run.Context())
	run := &running{env: env, limits: limits, allowed: allowedBy(limits.Tools), cancel: cancel, made: make(chan struct{}, 1)}
	pool := &env.walled
	if limits.BestEffort {
		pool = &env.bestEffort
	}
	user := by.Share()
	s := script.Script{Time: limits.Time, User: user, Memory: env.run.Memory().Open(user, nil), Run: engine.Run{
		Source: source, Args: args, Servers: servers, Calls: limits.Calls, AtOnce: limits.AtOnce, Output: limits.Output,
	}}
	run.attach(by, nil)
	by.Go(func() {
		defer cancel()
		var progress sync.WaitGroup
		progress.Go(func() { env.run.Guard(func() { run.report(ctx) }) })
		result, err := pool.Run(ctx, s, run.answer)
		cancel()
		progress.Wait()
		run.finish(result, err)
	})
}

// attach makes by the request of the script; responses are the host's answers in it.
func (run *running) attach(by *caller, responses json.RawMessage) {
	by.meta = wire.Get(transports.DeleteMeta(by.HostParams(), "progressToken"), "_meta")
	if !by.HostRequest().OnCancel(func(json.RawMessage) { run.cancel() }) {
		run.cancel()
	}
	run.mu.Lock()
	run.by = by
	parked, queued, outcome := run.parked, run.queued, run.outcome
	run.parked, run.queued = nil, nil
	run.mu.Unlock()
	if outcome != nil {
		by.reply(run, outcome)
		return
	}
	for _, in := range parked {
		run.begin(in, in.next(responses))
	}
	for _, in := range queued {
		run.begin(in, in.params)
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if len(run.asking) > 0 { // they asked meanwhile
		run.parkSoon()
	}
}

// finish answers the request with the outcome of the script, or stores it for the request that
// continues it.
func (run *running) finish(result *script.Result, err error) {
	run.mu.Lock()
	if run.due != nil {
		run.due.Stop()
	}
	run.outcome = render(result, err, run.notes)
	by, outcome, asking := run.by, run.outcome, slices.Concat(run.asking, run.parked)
	run.asking, run.parked = nil, nil
	run.mu.Unlock()
	for _, in := range asking {
		run.env.run.Forget(in.asked)
	}
	if by != nil {
		by.reply(run, outcome)
	}
}

func (by *caller) reply(run *running, outcome json.RawMessage) {
	by.ReplyWithin(outcome, run.limits.Output)
}

// Abandon ends a script whose host has not answered.
func (run *running) Abandon(json.RawMessage) { run.cancel() }

// report sends the host, if it wants progress, the number of ended calls.
func (run *running) report(ctx context.Context) {
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
		if token := wire.Get(by.HostRequest().Meta, "progressToken"); token != nil {
			by.HostRequest().Peer.Notify("notifications/progress", progress(token, calls, name))
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
