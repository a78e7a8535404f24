// Package tools is the surface of Magg's proxy extension (MCP Proxy Extension, draft
// 0.1.0): one tool that lists, shows and uses tools, resources and prompts.
package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Surface is the surface proxy.
var Surface = surface.Kind{Name: schema.ExposeProxy, Start: surface.Plain(newSurface)}

func newSurface(cfg *schema.Config) surface.Surface {
	return surface.Surface{
		Tools: []surface.Tool{{
			Name: "proxy",
			Definitions: func(v *catalog.View, _ int) []json.RawMessage {
				return []json.RawMessage{surface.Define("proxy", describe(v, cfg.Catalog.MaxChars), input, "")}
			},
			Answer: func(c *surface.Call) { answer(c, cmp.Or(cfg.Catalog.MaxListBytes, maxList)) },
		}},
		Texts: []surface.Texts{texts{}},
	}
}

type texts struct{ surface.NoTexts }

func (texts) HowToCall(t *catalog.Tool) string {
	return fmt.Sprintf(`proxy: {"action": "call", "type": "tool", "path": %s, "args": {…}}`, wire.Quote(t.Name))
}

func (texts) HowToRead(tool string) string {
	return fmt.Sprintf(`proxy {"action": "info", "type": "tool", "path": %s}`, wire.Quote(tool))
}

const input = `{"type":"object","properties":{` +
	`"action":{"type":"string","enum":["list","info","call","batch"],"description":"What to do: list what there is, show the definition of one, use one, or several of these at once."},` +
	`"type":{"type":"string","enum":["tool","resource","prompt"],"description":"Of what."},` +
	`"path":{"type":"string","description":"Name or URI, as list shows it. Required for info and call."},` +
	`"args":{"type":"object","description":"Arguments of the tool or prompt. Only for call.","additionalProperties":true},` +
	`"filter":{"type":"object","properties":{"prefix":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}},"description":"Only for list: paths that begin with prefix, and what has one of the tags."},` +
	`"limit":{"type":"integer","minimum":1,"description":"Only for list: the most entries."},` +
	`"cursor":{"type":"string","description":"Only for list: where the list before ended."},` +
	`"operations":{"type":"array","items":{"type":"object"},"description":"Only for batch: what to do, each as the arguments of this tool. They run at the same time."}},` +
	`"required":["action"],"additionalProperties":false}`

// maxList is the largest list without a limit, in bytes, unless the config sets another one: the
// definitions of 622 real tools fit into one embedded resource, which the extension requires.
const maxList = 512 << 10

// maxOperations is how many operations a batch may have.
const maxOperations = 32

// An operation is a request to the tool proxy.
type operation struct {
	action, kind, path string
	args               json.RawMessage // an object, or nil
	filter             filter
	limit              int
	cursor             string
	operations         []operation // of a batch
}

var (
	actions = []string{"list", "info", "call", "batch"}
	kinds   = []string{kindTool, kindResource, kindPrompt}
)

// readOperation reads an operation by the rules of the extension (section 2.2).
func readOperation(arguments json.RawMessage) (o operation, err error) {
	in := surface.ReadArguments(arguments, "action", "type", "path", "args", "filter", "limit", "cursor", "operations")
	if in.Errs == nil {
		o.action = in.Choice("action", actions)
	}
	if in.Errs != nil {
		return o, in.Err()
	}
	only := map[string][]string{"type": {"list", "info", "call"}, "path": {"info", "call"}, "args": {"call"}, "filter": {"list"}, "limit": {"list"}, "cursor": {"list"}, "operations": {"batch"}}
	for _, name := range []string{"type", "path", "args", "filter", "limit", "cursor", "operations"} {
		given, needed := in.Has(name), name == "path" || name == "operations"
		switch allowed := slices.Contains(only[name], o.action); {
		case given && !allowed:
			return o, fmt.Errorf("%q must not be given for action %q, only for %s", name, o.action, strings.Join(only[name], ", "))
		case !given && allowed && needed:
			return o, fmt.Errorf("%q is required for action %q", name, o.action)
		}
	}
	if o.action == "batch" {
		o.operations, err = readOperations(in.Values["operations"])
		return o, err
	}
	if o.kind = in.Choice("type", kinds); in.Errs != nil {
		return o, in.Err()
	}
	o.path, o.args, o.filter, o.limit, o.cursor = in.Text("path"), in.Object("args"), readFilter(in), in.Number("limit"), in.Text("cursor")
	switch {
	case in.Errs != nil:
	case o.path == "" && in.Has("path"):
		in.Fail(`"path" is empty`)
	case o.limit < 0 || o.limit == 0 && in.Has("limit"):
		in.Fail(`"limit" must be at least 1`)
	case o.kind == kindResource && o.args != nil:
		in.Fail(`"args" has no meaning for a resource: the path is its whole URI`)
	}
	return o, in.Err()
}

func readOperations(raw json.RawMessage) (all []operation, err error) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, fmt.Errorf(`"operations" must be an array, not %s`, wire.TypeName(raw))
	}
	for one := range wire.Elements(raw) {
		if wire.EqualString(wire.Get(one, "action"), "batch") {
			return nil, fmt.Errorf("operations[%d]: a batch cannot be in a batch", len(all))
		}
		o, err := readOperation(one)
		if err != nil {
			return nil, fmt.Errorf("operations[%d]: %w", len(all), err)
		}
		all = append(all, o)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New(`"operations" is empty`)
	case len(all) > maxOperations:
		return nil, fmt.Errorf(`"operations" has %d entries, at most %d can run at once`, len(all), maxOperations)
	}
	return all, nil
}

// readFilter reads the argument filter.
func readFilter(in *surface.Arguments) (f filter) {
	of := surface.ReadArguments(in.Object("filter"), "prefix", "tags")
	if of.Errs != nil {
		in.Fail(`"filter": %w`, of.Err())
		return f
	}
	tags := of.Values["tags"]
	if f.prefix = of.Text("prefix"); of.Errs == nil && tags != nil && tags[0] != '[' {
		of.Fail(`"tags" must be an array of strings, not %s`, wire.TypeName(tags))
	}
	for tag := range wire.Elements(tags) {
		text, ok := wire.Text(tag)
		if !ok && of.Errs == nil {
			of.Fail(`"tags" must be an array of strings, not of %s`, wire.TypeName(tag))
		}
		f.tags = append(f.tags, text)
	}
	in.Errs = append(in.Errs, of.Errs...)
	return f
}

// answer executes the arguments. Lists without a limit have at most maxBytes.
func answer(c *surface.Call, maxBytes int) {
	o, err := readOperation(c.Arguments)
	if err != nil {
		c.InvalidArguments(err)
		return
	}
	if o.action == "batch" {
		runBatch(c, o.operations, maxBytes)
		return
	}
	o.run(c, maxBytes, func(result json.RawMessage, err error) {
		if err != nil {
			c.Reply(surface.Failed(err))
			return
		}
		c.Reply(result, nil)
	})
}

// target defines how proxy calls tools.
var target = &surface.Target{Surface: schema.ExposeProxy, Way: way{}}

type way struct{ surface.AnyTool }

func (way) Unknown(v *catalog.View, name string) string { return v.Texts().UnknownTool(hints, name) }

// run executes one operation and passes on its result. Failures of dynmcp may be results or errors.
func (o operation) run(c *surface.Call, maxBytes int, done func(result json.RawMessage, err error)) {
	if o.action != "call" {
		o.look(c.On(c.Part(done)), maxBytes)
		return
	}
	params, method := []byte(`{}`), map[string]string{kindTool: "tools/call", kindResource: "resources/read", kindPrompt: "prompts/get"}[o.kind]
	if o.kind == kindResource {
		params = wire.Set(params, "uri", wire.Quote(o.path))
	} else {
		params = wire.Set(params, "name", wire.Quote(o.path))
		if o.args != nil {
			params = wire.Set(params, "arguments", o.args)
		}
	}
	c.Send(method, params, target, func(result json.RawMessage, err error) {
		switch {
		case err != nil:
			if result, err = surface.Failed(err); err == nil {
				result = annotatedContents(o.kind, o.path, result)
			}
		case !c.Asks(result):
			result = called(o.kind, o.path, result)
		}
		done(result, err)
	})
}

// look answers list and info from the catalogue, after loading the server of a path, or of a prefix
// that names one.
func (o operation) look(c *surface.Call, maxBytes int) {
	view := c.View()
	q := surface.Question{Answer: func() { c.Go(func() { o.answer(c, maxBytes) }) }}
	switch about := o.filter.prefix; {
	case o.action == "info" && o.kind == kindTool:
		q.Known = func() bool { _, ok := c.View().Called(o.path); return ok }
		q.Server, q.Missing = view.ServerFor(o.path), o.path
	case o.action == "info":
		q.Known = func() bool { _, ok := info(c.View(), o.kind, o.path); return ok }
	case about != "":
		q.Server = view.ServerOf(about)
	}
	c.Wait(q)
}

func (o operation) answer(c *surface.Call, maxBytes int) {
	view := c.View()
	if o.action == "list" {
		result, err := list(view, o.kind, o.filter, o.limit, maxBytes, o.cursor)
		if err != nil {
			c.InvalidArguments(err)
			return
		}
		c.Reply(result, nil)
		return
	}
	if t, ok := view.Called(o.path); ok && o.kind == kindTool {
		o.path = t.Name
	}
	result, ok := info(view, o.kind, o.path)
	if !ok {
		c.Fail(unknown(view, o.kind, o.path))
		return
	}
	if t, ok := view.Tool(o.path); ok && o.kind == kindTool {
		c.Show(t)
	}
	c.Reply(result, nil)
}

// A batch is a set of concurrent operations.
type batch struct {
	call *surface.Call

	mu    sync.Mutex
	parts []part // in the order of the operations
	open  int    // operations without a result
}

// runBatch executes operations concurrently. They report no progress: the host sent one token, and the
// combined progress would go up and down.
func runBatch(c *surface.Call, all []operation, maxBytes int) {
	c = c.On(c.Parallel())
	b := &batch{call: c, parts: make([]part, len(all)), open: len(all)}
	for i, o := range all {
		b.parts[i].what = strings.TrimSpace(o.action + " " + o.kind + " " + o.path)
	}
	for i, o := range all {
		o.run(c, maxBytes, func(result json.RawMessage, err error) { b.finish(i, result, err) })
	}
}

// finish records the result of an operation; after the last one the batch is answered.
func (b *batch) finish(i int, result json.RawMessage, err error) {
	if err == nil && b.call.Asks(result) {
		b.call.Forget(result)
		err = errors.New("it asks the host for input, which cannot be done in a batch: call it by itself (outcome unknown: it may have run)")
	}
	if err != nil {
		result = results.Error(surface.ErrorText(err))
		if rpc, ok := errors.AsType[*wire.Error](err); ok && rpc.Raw != nil {
			result = wire.Set(result, "error", rpc.Raw)
		}
	}
	b.mu.Lock()
	b.parts[i].result = bytes.Clone(result) // it may be part of a reused line
	b.open--
	over := b.open == 0
	b.mu.Unlock()
	if over {
		b.call.Reply(batched(b.parts), nil)
	}
}
