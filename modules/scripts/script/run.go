package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
)

// A run is one script in a child.
type run struct {
	child  *child
	script Script
	answer Answerer
	place  *place
	sleeps bool // the script waits for a timer alone

	healthy bool // the child can run another script
	result  Result
	printed strings.Builder
	made    int // number of calls

	working sync.WaitGroup // a goroutine for each call

	mu       sync.Mutex // guards what follows, and result.Calls
	inFlight int
	over     bool // no answer is sent any more
	blobs    blobs
}

// Why the context of a run is done.
var (
	errLate = errors.New("the script took too long")
	errOver = errors.New("the script has ended")
)

// maxSource is how long a script may be.
const maxSource = 1 << 20

// drainTimeout is how long a child may take to read the answers that are still being sent when
// its script has ended.
const drainTimeout = 2 * time.Second

func (r *run) run(ctx context.Context) error {
	if len(r.script.Source) > maxSource {
		r.healthy = true
		return &Failure{Message: fmt.Sprintf("the script has %d bytes, at most %d are run", len(r.script.Source), maxSource)}
	}
	callers := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := newClock(r.script.Time, r.place, func() { cancel(errLate) })
	defer clock.end()
	ctx = context.WithValue(ctx, clockKey{}, clock)
	unwatch := context.AfterFunc(ctx, r.child.tree.Kill)

	done, err := r.follow(ctx)
	r.result.Printed = r.printed.String()
	r.healthy = unwatch() && done != nil && !done.Worn
	if done == nil {
		r.child.tree.Kill()
	}
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	cause := context.Cause(ctx)
	cancel(errOver)
	unread := time.AfterFunc(drainTimeout, r.child.tree.Kill)
	r.working.Wait()
	r.healthy = unread.Stop() && r.healthy

	switch {
	case err != nil:
		return err
	case done != nil && (cause == nil || done.Failure == nil): // a failure may come from a cancelled call
		return r.finish(done)
	case cause == errLate:
		return &Failure{Message: fmt.Sprintf("the script was stopped: it was not done after %v", r.script.Time)}
	case callers.Err() != nil:
		return context.Cause(callers)
	}
	<-r.child.ended
	return r.child.failure(r.script.CPU)
}

// follow handles the requests of the child until the script has ended. Without done the child cannot
// be reused.
func (r *run) follow(ctx context.Context) (*engine.Done, error) {
	_ = r.child.send(engine.Request{Run: &r.script.Run}) // a child that has ended has no events
	for {
		event, err := r.child.next()
		switch {
		case err != nil:
			return nil, &Failure{Message: err.Error()}
		case event == nil:
			return nil, nil
		case event.Done != nil:
			return event.Done, nil
		case event.Call != nil:
			if !r.begin(ctx, *event.Call) {
				return nil, &Failure{Message: errProtocol.Error()}
			}
		}
		r.print(event.Printed)
		if event.Memory > 0 {
			if !r.script.Memory.Resize(max(event.Memory, leastMemory)) {
				return nil, &Failure{Message: "the script was stopped: " + tooMuch}
			}
		} else if event.Sleeps != r.sleeps {
			r.sleep(event.Sleeps)
		}
	}
}

// sleep gives the place of the script back while it waits for a timer.
func (r *run) sleep(on bool) {
	if r.sleeps = on; on {
		r.place.wait()
	} else {
		r.place.goOn()
	}
}

// print stores printed text, up to the limit.
func (r *run) print(text string) {
	if rest := r.script.Output - r.printed.Len(); len(text) > rest { // the child broke the limit
		cut := strings.ToValidUTF8(text[:rest], "")
		r.result.Dropped += len(text) - len(cut)
		text = cut
	}
	r.printed.WriteString(text)
}

// begin makes a call. It returns false for one that the child must not request.
func (r *run) begin(ctx context.Context, call Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	if call.ID <= r.child.last || r.made > r.script.Calls || r.inFlight >= r.script.AtOnce {
		return false
	}
	switch call.Kind {
	case engine.Tool, engine.Resource, engine.Search, engine.Describe:
	default:
		return false
	}
	if call.Kind == engine.Tool && !wire.IsObject(call.Args) {
		return false
	}
	r.child.last = call.ID
	r.inFlight++
	record := -1
	if call.Kind == engine.Tool || call.Kind == engine.Resource {
		record = len(r.result.Calls)
		r.result.Calls = append(r.result.Calls, CallRecord{Name: call.Name})
	}
	r.working.Go(func() {
		began := time.Now()
		result, err := r.answer(ctx, call)
		r.answered(call, result, err, record, time.Since(began))
	})
	return true
}

// answered records the end of a call and tells the child.
func (r *run) answered(call Call, result json.RawMessage, err *Failure, record int, took time.Duration) {
	answer := engine.Answer{ID: call.ID}
	r.mu.Lock()
	if err == nil {
		answer.Result, answer.Blobs, err = r.blobs.take(call.Kind, result)
	}
	if err != nil {
		answer.Error = err
	}
	if record >= 0 {
		noted := &r.result.Calls[record]
		noted.Took, noted.Outcome, noted.Cut = took, engine.Ran, r.over
		switch {
		case err != nil:
			noted.Outcome, noted.Error = err.Outcome, err.Message
		case bytes.Equal(wire.Get(answer.Result, "isError"), []byte("true")):
			noted.Error = "the tool says that it failed"
		}
	}
	r.inFlight--
	over := r.over
	r.mu.Unlock()
	if !over {
		_ = r.child.send(engine.Request{Answer: &answer}) // a child that has ended needs none
	}
}

// finish sets the result from the returned value.
func (r *run) finish(done *engine.Done) error {
	r.result.Dropped += max(done.Dropped, 0)
	if f := done.Failure; f != nil {
		return f
	}
	if r.result.Value = done.Value; done.Value != nil {
		text, ok := wire.Text(done.Value)
		if !ok {
			text = string(done.Value)
		}
		block := wire.AppendQuote([]byte(`{"type":"text","text":`), text)
		r.result.Content = append(r.result.Content, append(block, '}'))
	}
	for _, id := range done.Blobs {
		if block := r.blobs.give(id); block != nil {
			r.result.Content = append(r.result.Content, block)
		}
	}
	return nil
}
