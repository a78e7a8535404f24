package aggregator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// proxySurface is Magg's proxy extension: one tool that lists, shows and uses tools,
// resources and prompts.
func proxySurface(a *Aggregator, cfg *schema.Config) []tool {
	return []tool{{name: "proxy", call: (*session).proxy, definitions: func(v *catalog.View, _ int) []json.RawMessage {
		return []json.RawMessage{define("proxy", v.DescribeProxy(cfg.Catalog.MaxChars), proxyInput, "")}
	}}}
}

const proxyInput = `{"type":"object","properties":{` +
	`"action":{"type":"string","enum":["list","info","call","batch"],"description":"What to do: list what there is, show the definition of one, use one, or several of these at once."},` +
	`"type":{"type":"string","enum":["tool","resource","prompt"],"description":"Of what."},` +
	`"path":{"type":"string","description":"Name or URI, as list shows it. Required for info and call."},` +
	`"args":{"type":"object","description":"Arguments of the tool or prompt. Only for call.","additionalProperties":true},` +
	`"filter":{"type":"object","properties":{"prefix":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}},"description":"Only for list: paths that begin with prefix, and what has one of the tags."},` +
	`"limit":{"type":"integer","minimum":1,"description":"Only for list: the most entries."},` +
	`"cursor":{"type":"string","description":"Only for list: where the list before ended."},` +
	`"operations":{"type":"array","items":{"type":"object"},"description":"Only for batch: what to do, each as the arguments of this tool. They run at the same time."}},` +
	`"required":["action"],"additionalProperties":false}`

// maxProxyList is how many bytes a list has that names no limit, unless the config says
// another number: the definitions of 622 real tools are one embedded resource, as the
// extension has it.
const maxProxyList = 512 << 10

// maxOperations is how many operations a batch may have.
const maxOperations = 32

// An operation is what proxy is asked to do.
type operation struct {
	action, kind, path string
	args               json.RawMessage // an object, or nil
	filter             catalog.ProxyFilter
	limit              int
	cursor             string
	operations         []operation // of a batch
}

var (
	proxyActions = []string{"list", "info", "call", "batch"}
	proxyKinds   = []string{catalog.KindTool, catalog.KindResource, catalog.KindPrompt}
)

// readOperation reads an operation by the rules of the extension (section 2.2).
func readOperation(arguments json.RawMessage) (o operation, err error) {
	in := readArguments(arguments, "action", "type", "path", "args", "filter", "limit", "cursor", "operations")
	if in.errs == nil {
		o.action = in.choice("action", proxyActions)
	}
	if in.errs != nil {
		return o, in.err()
	}
	only := map[string][]string{"type": {"list", "info", "call"}, "path": {"info", "call"}, "args": {"call"}, "filter": {"list"}, "limit": {"list"}, "cursor": {"list"}, "operations": {"batch"}}
	for _, name := range []string{"type", "path", "args", "filter", "limit", "cursor", "operations"} {
		given, needed := in.has(name), name == "type" || name == "path" || name == "operations"
		switch allowed := slices.Contains(only[name], o.action); {
		case given && !allowed:
			return o, fmt.Errorf("%q must not be given for action %q, only for %s", name, o.action, strings.Join(only[name], ", "))
		case !given && allowed && needed && name == "type":
			return o, fmt.Errorf(`"type" is missing: one of %s`, strings.Join(proxyKinds, ", "))
		case !given && allowed && needed:
			return o, fmt.Errorf("%q is required for action %q", name, o.action)
		}
	}
	if o.action == "batch" {
		o.operations, err = readOperations(in.values["operations"])
		return o, err
	}
	if o.kind = in.choice("type", proxyKinds); in.errs != nil {
		return o, in.err()
	}
	o.path, o.args, o.filter, o.limit, o.cursor = in.text("path"), in.object("args"), in.proxyFilter(), in.number("limit"), in.text("cursor")
	switch {
	case in.errs != nil:
	case o.path == "" && in.has("path"):
		in.fail(`"path" is empty`)
	case o.limit < 0 || o.limit == 0 && in.has("limit"):
		in.fail(`"limit" must be at least 1`)
	case o.kind == catalog.KindResource && o.args != nil:
		in.fail(`"args" has no meaning for a resource: the path is its whole URI`)
	}
	return o, in.err()
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

// proxyFilter reads the argument filter.
func (in *argumentReader) proxyFilter() (f catalog.ProxyFilter) {
	filter := readArguments(in.object("filter"), "prefix", "tags")
	if filter.errs != nil {
		in.fail(`"filter": %w`, filter.err())
		return f
	}
	tags := filter.values["tags"]
	if f.Prefix = filter.text("prefix"); filter.errs == nil && tags != nil && tags[0] != '[' {
		filter.fail(`"tags" must be an array of strings, not %s`, wire.TypeName(tags))
	}
	for tag := range wire.Elements(tags) {
		text, ok := wire.Text(tag)
		if !ok && filter.errs == nil {
			filter.fail(`"tags" must be an array of strings, not of %s`, wire.TypeName(tag))
		}
		f.Tags = append(f.Tags, text)
	}
	in.errs = append(in.errs, filter.errs...)
	return f
}

// proxy does what its arguments say.
func (s *session) proxy(r *host.Request, p callParams) {
	o, err := readOperation(p.arguments.In(p.all))
	if err != nil {
		refuseArguments(r, "proxy", err)
		return
	}
	if o.action == "batch" {
		s.proxyBatch(r, o.operations, p.all)
		return
	}
	s.operate(r, o, p.all, func(result json.RawMessage, err error) {
		if err != nil {
			failInner(r, err)
			return
		}
		r.Reply(result, nil)
	})
}

// operate does one operation, for a request with these params, and hands on what comes
// of it. Failures of ours may be results or errors.
func (s *session) operate(r *host.Request, o operation, outer json.RawMessage, done func(result json.RawMessage, err error)) {
	if o.action != "call" {
		s.look(r.Inner("proxy", innerParams(nil, outer), done), o)
		return
	}
	params, method := []byte(`{}`), map[string]string{catalog.KindTool: "tools/call", catalog.KindResource: "resources/read", catalog.KindPrompt: "prompts/get"}[o.kind]
	if o.kind == catalog.KindResource {
		params = wire.Set(params, "uri", wire.Quote(o.path))
	} else {
		params = wire.Set(params, "name", wire.Quote(o.path))
		if o.args != nil {
			params = wire.Set(params, "arguments", o.args)
		}
	}
	inner := r.Inner(method, innerParams(params, outer), func(result json.RawMessage, err error) {
		if err == nil && !ask.NeedsInput(nil, result) {
			result = catalog.ProxyCalled(o.kind, o.path, result)
		}
		done(result, err)
	})
	s.serveInner(inner, catalog.Proxy)
}

// look answers list and info, which are inquiries, from the catalogue: about the server
// of a path, or of a prefix that names one.
func (s *session) look(r *host.Request, o operation) {
	answer := func() {
		view := s.view()
		if o.action == "list" {
			result, err := view.ProxyList(o.kind, o.filter, o.limit, cmp.Or(s.agg.config().Catalog.MaxListBytes, maxProxyList), o.cursor)
			if err != nil {
				refuseArguments(r, "proxy", err)
				return
			}
			r.Reply(result, nil)
			return
		}
		if t, ok := view.Called(o.path); ok && o.kind == catalog.KindTool {
			o.path = t.Name
		}
		result, ok := view.ProxyInfo(o.kind, o.path)
		if !ok {
			result = errorResult(view.UnknownToProxy(o.kind, o.path))
		} else if t, ok := view.Tool(o.path); ok && o.kind == catalog.KindTool {
			s.show(t)
		}
		r.Reply(result, nil)
	}
	view := s.view()
	q := inquiry{asText: true, answer: func() { s.agg.work.Answer(r, answer) }}
	switch about := o.filter.Prefix; {
	case o.action == "info":
		q.enough = func() bool { _, ok := s.view().ProxyInfo(o.kind, o.path); return ok }
		if o.kind == catalog.KindTool {
			q.enough = func() bool { _, ok := s.view().Called(o.path); return ok }
			q.server = view.ServerFor(o.path)
		}
	case strings.Contains(about, "/"):
		q.server = view.ServerOf(about)
	}
	q.ask(s, r)
}

// A batch is operations that run at the same time.
type batch struct {
	agg     *Aggregator
	request *host.Request

	mu    sync.Mutex
	parts []catalog.ProxyPart // in the order of the operations
	open  int                 // operations that have no result yet
}

// proxyBatch does operations at the same time. They have no progress: the host gave one
// token, and progress that many report under it goes up and down.
func (s *session) proxyBatch(r *host.Request, all []operation, outer json.RawMessage) {
	outer = transports.DeleteMeta(wire.Delete(outer, "inputResponses", "requestState"), "progressToken")
	b := &batch{agg: s.agg, request: r, parts: make([]catalog.ProxyPart, len(all)), open: len(all)}
	for i, o := range all {
		b.parts[i].What = strings.TrimSpace(o.action + " " + o.kind + " " + o.path)
	}
	for i, o := range all {
		s.operate(r, o, outer, func(result json.RawMessage, err error) { b.finish(i, result, err) })
	}
}

// finish takes the result of an operation; the last one's is followed by the answer.
func (b *batch) finish(i int, result json.RawMessage, err error) {
	if err == nil && ask.NeedsInput(nil, result) {
		b.agg.forgetState(result)
		err = errors.New("it asks the host for input, which cannot be done in a batch: call it by itself (outcome unknown: it may have run)")
	}
	if err != nil {
		result = errorResult(innerError(err))
		if rpc, ok := errors.AsType[*wire.Error](err); ok && rpc.Raw != nil {
			result = wire.Set(result, "error", rpc.Raw)
		}
	}
	b.mu.Lock()
	b.parts[i].Result = bytes.Clone(result) // it may be lent
	b.open--
	over := b.open == 0
	b.mu.Unlock()
	if over {
		b.request.Reply(catalog.ProxyBatched(b.parts), nil)
	}
}
