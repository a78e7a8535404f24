package call

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Params are the params of a tools/call, with the positions of two members.
type Params struct {
	All             json.RawMessage
	Name, Arguments wire.Span
	Task            bool // they have the member "task"
}

// Of returns the params for another name, with the position of the arguments.
func (p Params) Of(name string) wire.Object {
	same := wire.Object{Text: p.All, Known: p.Arguments}
	if wire.EqualString(p.Name.In(p.All), name) {
		return same
	}
	return same.Replace(wire.Edit{Span: p.Name, With: wire.Quote(name)})
}

// With returns the params with another name and other arguments, which may be
// nil, and the position of the arguments. All other bytes stay the same. If the arguments are
// a part of the old ones, With may overwrite p.All around them.
func (p Params) With(name string, arguments json.RawMessage) wire.Object {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	if params := p.inPlace(name, arguments); params != nil {
		return wire.ObjectOf(params, arguments)
	}
	if p.Arguments.Len == 0 {
		return p.Of(name).Set("arguments", arguments)
	}
	return wire.Object{Text: p.All, Known: p.Arguments}.Replace(wire.Edit{Span: p.Name, With: wire.Quote(name)}, wire.Edit{Span: p.Arguments, With: arguments})
}

// inPlace is With for arguments that are a part of the old ones: the bytes around them are
// moved next to them. It returns nil if there is no room, or too much would have to move.
func (p Params) inPlace(name string, arguments json.RawMessage) json.RawMessage {
	const farthest = 4 << 10
	at := wire.Locate(p.Arguments.In(p.All), arguments)
	if at.Len == 0 || p.Name.Off > p.Arguments.Off {
		return nil
	}
	at.Off += p.Arguments.Off
	var space [128]byte
	quoted := wire.AppendQuote(space[:0], name)
	before, between, behind := p.All[:p.Name.Off], p.All[p.Name.Off+p.Name.Len:p.Arguments.Off], p.All[p.Arguments.Off+p.Arguments.Len:]
	start := at.Off - len(between) - len(quoted) - len(before)
	if start < 0 || len(before)+len(between)+len(behind) > farthest {
		return nil
	}
	copy(p.All[at.Off-len(between):], between)
	copy(p.All[start+len(before):], quoted)
	copy(p.All[start:], before)
	copy(p.All[at.Off+at.Len:], behind)
	return p.All[start : at.Off+at.Len+len(behind)]
}
