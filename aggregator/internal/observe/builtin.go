package observe

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A BuiltinCall is an observed call of one of dynmcp's own tools. Its methods do nothing on nil, which
// stands for a call that is not observed.
type BuiltinCall struct {
	reporter Reporter
	end      BuiltinEnd
	shown    atomic.Int32 // definitions
	passed   atomic.Bool  // it has called other tools, which are reported themselves
}

// BeginBuiltin returns the call of one of dynmcp's own tools, to be reported when it is answered, nil if
// nobody observes.
func (o Reporter) BeginBuiltin(surface, tool string, arguments json.RawMessage) *BuiltinCall {
	if calls, _ := o.wants(); !calls {
		return nil
	}
	c := &BuiltinCall{reporter: o, end: BuiltinEnd{Surface: surface, Tool: tool, Arguments: bytes.Clone(arguments), Began: time.Now()}}
	switch query := wire.Get(arguments, "query"); {
	case query == nil:
	case query[0] == '[':
		for range wire.Elements(query) {
			c.end.Queries++
		}
	case string(query) != `""` && string(query) != "null":
		c.end.Queries = 1
	}
	return c
}

// Show counts a definition in the answer.
func (c *BuiltinCall) Show() {
	if c != nil {
		c.shown.Add(1)
	}
}

// Pass records that the call has called other tools.
func (c *BuiltinCall) Pass() {
	if c != nil {
		c.passed.Store(true)
	}
}

// End reports the call and its answer, once.
func (c *BuiltinCall) End(from func() SessionInfo, result json.RawMessage, err error) {
	if c == nil || c.passed.Swap(true) {
		return
	}
	end := c.end
	end.From, end.End, end.Result, end.Shown = from(), time.Now(), result, int(c.shown.Load())
	end.Failed = err != nil || string(wire.Get(result, "isError")) == "true"
	c.reporter.Observer.Builtin(end)
}
