package observe

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// An OwnCall is an observed call of one of dynmcp's own tools. Its methods do nothing on nil, which
// stands for a call that is not observed.
type OwnCall struct {
	reporter Reporter
	end      OwnEnd
	shown    atomic.Int32 // definitions
	passed   atomic.Bool  // it has called other tools, which are reported themselves
}

// BeginOwn returns the call of one of dynmcp's own tools, to be reported when it is answered, nil if
// nobody observes.
func (o Reporter) BeginOwn(surface, tool string, arguments json.RawMessage) *OwnCall {
	if !o.TellsOwn() {
		return nil
	}
	own := &OwnCall{reporter: o, end: OwnEnd{Surface: surface, Tool: tool, Arguments: bytes.Clone(arguments), Began: time.Now()}}
	switch query := wire.Get(arguments, "query"); {
	case query == nil:
	case query[0] == '[':
		for range wire.Elements(query) {
			own.end.Queries++
		}
	case string(query) != `""` && string(query) != "null":
		own.end.Queries = 1
	}
	return own
}

// Show counts a definition in the answer.
func (own *OwnCall) Show() {
	if own != nil {
		own.shown.Add(1)
	}
}

// Pass records that the call has called other tools.
func (own *OwnCall) Pass() {
	if own != nil {
		own.passed.Store(true)
	}
}

// End reports the call and its answer, once.
func (own *OwnCall) End(from func() SessionInfo, result json.RawMessage, err error) {
	if own == nil || own.passed.Swap(true) {
		return
	}
	end := own.end
	end.From, end.End, end.Result, end.Shown = from(), time.Now(), result, int(own.shown.Load())
	end.Failed = err != nil || string(wire.Get(result, "isError")) == "true"
	own.reporter.Observer.Own(end)
}
