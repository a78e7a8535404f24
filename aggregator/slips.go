package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// What a model needs to hear about its call beside the upstream's answer is added
// here: everything else of the answer stays the bytes it is.

// metaChanged is the member of a result's _meta that says what use_tool changed in
// the input.
const metaChanged = "dynmcp/changedInput"

// maxError is the longest result, in bytes, in which we look for a complaint about
// the input: large results are not read again on their way.
const maxError = 16 << 10

// maxSchema is the largest input schema, in bytes, that is added to a complaint.
const maxSchema = 8 << 10

// complaint matches how servers say that an input does not fit, those of the
// official SDKs first: as a result, not as the error -32602, some of them.
var complaint = lazyregexp.New(`(?i)-32602|validation error|validation failed|invalid (arguments?|params?|parameters?|input)\b|required property|missing required|invalid_type|unexpected keyword argument|unrecognized_keys`)

// explained returns the result of a call of use_tool with what is to be said of
// it: that the input was changed, and the input schema where the server complains.
func (c *forwardedCall) explained(outline *wire.Outline, result json.RawMessage) json.RawMessage {
	if c.route.changed != nil {
		if changed, err := json.Marshal(c.route.changed); err == nil {
			result = transports.SetMeta(result, metaChanged, changed)
		}
	}
	if !c.route.explain || len(result) > maxError || string(outline.Get(result, "isError")) != "true" {
		return result
	}
	content := wire.Find(result, "content")
	list := content.In(result)
	if !complaint().Match(list) || len(list) < 2 || list[0] != '[' {
		return result
	}
	schema := c.schemaOnce()
	if schema == "" {
		return result
	}
	item := fmt.Appendf(nil, `{"type":"text","text":%s}]`, wire.Quote(schema))
	for range wire.Elements(list) {
		item = append([]byte{','}, item...)
		break
	}
	last := wire.Span{Off: content.Off + content.Len - 1, Len: 1}
	return wire.Replace(result, wire.Edit{Span: last, With: item})
}

// explainedError is explained for an upstream's own error.
func (c *forwardedCall) explainedError(err error) error {
	var failure *transports.Failure
	var theirs *wire.Error
	if !c.route.explain || errors.As(err, &failure) || !errors.As(err, &theirs) || theirs.Code != wire.CodeInvalidParams {
		return err
	}
	schema := c.schemaOnce()
	if schema == "" {
		return err
	}
	said := *theirs
	if said.Message += "\n" + schema; said.Raw != nil {
		said.Raw = wire.Set(said.Raw, "message", wire.Quote(said.Message))
	}
	return &said
}

// schemaOnce returns the text that shows the tool's input schema, "" if this
// session has seen it.
func (c *forwardedCall) schemaOnce() string {
	t, s := c.route.tool, c.session
	if t.InputSchema == nil {
		return ""
	}
	s.mu.Lock()
	seen := s.schemas[t.Name]
	if s.schemas == nil {
		s.schemas = map[string]bool{}
	}
	s.schemas[t.Name] = true
	s.mu.Unlock()
	if seen {
		return ""
	}
	if len(t.InputSchema) > maxSchema {
		return fmt.Sprintf(`The input schema of %s is long: discover_tool {"tool_name": %s} shows it.`, t.Name, wire.Quote(t.Name))
	}
	return fmt.Sprintf("Input schema of %s, which tool_input has to fit:\n%s", t.Name, t.VisibleInput())
}
