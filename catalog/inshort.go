package catalog

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/catalog/input"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/tokens"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// What a definition among the results of a search may take, by estimate.
const (
	shortTokens       = 1500 // and those of all results together
	descriptionTokens = 200  // of its description, which is left at least leastTokens
	secondTokens      = 50   // of the description of one that is not the best
	leastTokens       = 100
)

// inShort is Brief as the answer of a search has it, in about so many tokens: the input
// schema is whole unless it takes all the room, the description gets what is left, and what
// the tool answers is left to Brief. Of the hints it has those that a call depends on.
func (t *Tool) inShort(through string, most, words int, schema json.RawMessage) string {
	shown := t.sized(schema, most, "")
	description := t.longDescription()
	room := min(max(most-tokens.Count(shown), leastTokens), words)
	if n := tokens.Count(description); n > room {
		description = display.Cut(description, display.Units(description)*room/n)
	}
	short := *t
	short.Title = "" // it says what the name says
	return short.definition(through, description, shown, "", t.briefHints())
}

// briefHints tells of a tool that it only reads, or that it may destroy, if it says so.
func (t *Tool) briefHints() string {
	for _, hint := range []string{"readOnlyHint", "destructiveHint"} {
		if string(wire.Get(t.Annotations, hint)) == "true" {
			return hint + ": true\n"
		}
	}
	return ""
}

// plainInput is the input schema without the name of its dialect.
func (t *Tool) plainInput() json.RawMessage {
	if !wire.IsObject(t.InputSchema) {
		return t.InputSchema
	}
	return wire.Delete(t.InputSchema, "$schema")
}

// bareInput is the plain input schema without the descriptions of arguments that a call
// need not have.
func (t *Tool) bareInput() json.RawMessage { return input.Bare(t.plainInput()) }
