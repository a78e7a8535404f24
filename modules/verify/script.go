package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// The kinds of compared answers, as the report names them.
const (
	handshake     = "handshake"
	lists         = "lists"
	resources     = "resources"
	prompts       = "prompts"
	tools         = "tools"
	progress      = "progress"
	bigNumber     = "big numbers"
	failures      = "errors"
	cancellation  = "cancellation"
	notifications = "notifications"
)

// kinds are the lists that a server may have, with the capability that declares each.
var kinds = []struct{ method, member, capability string }{
	{"tools/list", "tools", "tools"},
	{"resources/list", "resources", "resources"},
	{"resources/templates/list", "resourceTemplates", "resources"},
	{"prompts/list", "prompts", "prompts"},
}

// A request is a request of a plan.
type request struct {
	what, name, method string
	params             []byte
	tool, arguments    []byte // of a call, as JSON
}

// A plan holds the requests that are sent both directly and through dynmcp. It is made from
// the lists of the server itself.
type plan struct {
	requests []request
	big      int           // number of calls with big numbers
	changes  []string      // announced changes of lists, nil if not known yet
	cancel   request       // a call to cancel; without a method there is none
	longest  time.Duration // that cancel took
}

// A place identifies an answer of a run. before counts earlier answers with the same what and
// name.
type place struct {
	what, name string
	before     int
}

// A run sends the requests of a plan over a connection, and records the answers.
type run struct {
	*connection
	server  string
	era     transports.Era
	surface string
	calls   int              // sent; they number the progress tokens
	planned bool             // the plan is that of an earlier run
	places  []place          // in order
	seen    map[place][]byte // the answers

	listed map[string][]json.RawMessage // the entries of the first lists, by method
}

func (r *run) record(what, name string, value []byte) {
	at := place{what: what, name: name}
	for r.seen[at] != nil {
		at.before++
	}
	if value == nil {
		value = []byte(`null`)
	}
	r.places, r.seen[at] = append(r.places, at), value
}

// recordServer records the handshake and the lists of the server.
func (r *run) recordServer(ctx context.Context) {
	r.listed = map[string][]json.RawMessage{}
	info := r.info
	r.record(handshake, "protocolVersion", wire.Quote(info.ProtocolVersion))
	r.record(handshake, "protocolVersion of the server", wire.Quote(r.version))
	r.record(handshake, "capabilities", info.Capabilities)
	r.record(handshake, "serverInfo", info.Implementation)
	r.record(handshake, "instructions", wire.Quote(info.Instructions))
	r.record(handshake, "other members", info.Extra)
	for _, kind := range kinds {
		if !info.Has(kind.capability) {
			continue
		}
		entries, value := r.list(ctx, kind.method, kind.member)
		r.listed[kind.method] = entries
		r.record(lists, kind.method, value)
	}
	if info.Has("logging") && r.era == transports.Handshake {
		r.record(notifications, "logging/setLevel", r.ask(ctx, "logging/setLevel", []byte(`{"level":"debug"}`), nil))
	}
}

// execute sends the requests of a plan one after another, and cancels a call at the end.
func (r *run) execute(ctx context.Context, p *plan) {
	for _, q := range p.requests {
		if ctx.Err() != nil {
			return
		}
		steps := &callNotes{all: r.notes}
		if r.pipe {
			steps.answered = q.name
		}
		began := time.Now()
		got := r.ask(ctx, q.method, r.params(q), steps)
		r.record(q.what, q.name, got)
		if q.what != tools {
			continue
		}
		if took := time.Since(began); !r.planned && string(got) != gone && string(got) != unanswered && took > p.longest {
			p.cancel, p.longest = q, took // the longest call is the likeliest to run when it is cancelled
		}
		said := steps.take()
		if string(got) == gone {
			said = []byte(gone) // as its answer
		}
		r.record(progress, q.name, said)
	}
	if r.surface != schema.ExposeDirect {
		return
	}
	// Once this request is answered, everything that was sent before has arrived.
	fence := request{method: "tools/call", tool: []byte(`"verify_no_such_tool"`), arguments: []byte(`{}`)}
	r.record(failures, "unknown tool", r.ask(ctx, fence.method, r.params(fence), nil))
	r.record(notifications, "in order", r.notes.take())
	r.relist(ctx, p)
	if p.cancel.method != "" {
		r.cancelCall(ctx, p, fence)
	}
}

// cancelTries bounds how often a call is cancelled until its server hears that. A call whose
// answer arrives together with the cancellation has neither.
const cancelTries = 5

// cancelCall cancels a call, and checks that the server hears that and that later calls are answered.
func (r *run) cancelCall(ctx context.Context, p *plan, fence request) {
	heard := r.cancel(ctx, p)
	r.record(cancellation, "answers afterwards", r.ask(ctx, fence.method, r.params(fence), nil))
	r.record(cancellation, "the same call again", r.ask(ctx, p.cancel.method, r.params(p.cancel), nil))
	if r.hears == nil || ctx.Err() != nil {
		return
	}
	for tries := 1; !heard() && tries < cancelTries && ctx.Err() == nil; tries++ {
		heard = r.cancel(ctx, p)
		r.ask(ctx, fence.method, r.params(fence), nil)
	}
	r.record(cancellation, "the server hears it", strconv.AppendBool(nil, heard()))
}

// cancel makes a call and cancels it at once. heard reports, after a later answer, whether the
// server heard that, or the call had its answer first.
func (r *run) cancel(ctx context.Context, p *plan) (heard func() bool) {
	withdrawn, cancel := context.WithCancel(ctx)
	cancel()
	late := r.peer.Late()
	got := r.ask(withdrawn, p.cancel.method, r.params(p.cancel), nil)
	return func() bool { return string(got) != unanswered || r.peer.Late() > late || r.hears() }
}

// relist fetches the lists again whose change was announced. If the direct run finds no change, the
// announcement is not required behind dynmcp.
func (r *run) relist(ctx context.Context, p *plan) {
	wait, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	announced := r.notes.changes(wait, p.changes)
	known, expected := p.changes != nil, p.changes
	if !known {
		p.changes, expected = []string{}, announced
	}
	for _, kind := range kinds {
		notification := "notifications/" + kind.method + "_changed"
		if !slices.Contains(expected, notification) {
			continue
		}
		_, now := r.list(ctx, kind.method, kind.member)
		if !known && (string(now) == gone || bytes.Equal(now, r.seen[place{what: lists, name: kind.method}])) {
			continue
		}
		if !known {
			p.changes = append(p.changes, notification)
		}
		r.record(notifications, notification, strconv.AppendBool(nil, slices.Contains(announced, notification)))
		r.record(lists, kind.method+", after the calls", now)
	}
}

// list fetches a list. value is an object of the entries by name or URI, or the error.
func (r *run) list(ctx context.Context, method, member string) (entries []json.RawMessage, value []byte) {
	ctx, cancel := r.timeout(ctx)
	defer cancel()
	entries, err := r.peer.List(ctx, method, member)
	if err != nil {
		r.lose(err)
		return nil, answer(nil, err)
	}
	var members [][]byte
	for _, entry := range entries {
		name := []byte(`""`)
		for _, key := range []string{"name", "uriTemplate", "uri"} { // the last one present
			if text := wire.Get(entry, key); wire.TypeName(text) == "a string" {
				name = text
			}
		}
		members = append(members, fmt.Appendf(nil, "%s:%s", name, entry))
	}
	return entries, joined('{', members, '}')
}

// joined joins the parts of a JSON array or object.
func joined(begin byte, parts [][]byte, end byte) []byte {
	return append(append([]byte{begin}, bytes.Join(parts, []byte{','})...), end)
}

// params returns the params of a request for the surface of the run.
func (r *run) params(q request) []byte {
	if q.method != "tools/call" {
		return q.params
	}
	name, input := q.tool, q.arguments
	text, _ := wire.Text(q.tool)
	path := string(wire.Quote(r.server + "/" + text))
	switch r.surface {
	case schema.ExposeDirect:
		name = r.listedAs(q.tool)
	case schema.ExposeDiscover:
		name, input = []byte(`"use_tool"`), fmt.Appendf(nil, `{"tool_name":%s,"tool_input":%s}`, path, q.arguments)
	case schema.ExposeTree:
		name, input = []byte(`"meta_call"`), fmt.Appendf(nil, `{"path":"/%s,"args":%s}`, path[1:], q.arguments)
	case schema.ExposeBrowser:
		name, input = []byte(`"mcp_call"`), fmt.Appendf(nil, `{"method":"tools/call","params":{"name":%s,"arguments":%s}}`, path, q.arguments)
	case schema.ExposeProxy:
		name, input = []byte(`"proxy"`), fmt.Appendf(nil, `{"action":"call","type":"tool","path":%s,"args":%s}`, path, q.arguments)
	}
	r.calls++
	meta := fmt.Sprintf(`"progressToken":"verify %d"`, r.calls)
	if r.era == transports.Stateless {
		meta += `,"` + transports.MetaLogLevel + `":"debug"`
	}
	return fmt.Appendf(nil, `{"name":%s,"arguments":%s,"_meta":{%s}}`, name, input, meta)
}

// renamed matches a name that the direct surface gives to a tool whose own hosts do not accept.
var renamed = lazyregexp.New(`^(.*)_[0-9a-f]{8}$`)

var notAccepted = lazyregexp.New(`[^A-Za-z0-9_-]`)

// listedAs returns the name, as JSON, under which a tool is listed: its own, or the only one that
// stands for it.
func (r *run) listedAs(tool []byte) []byte {
	own := notAccepted().ReplaceAllString(textOf(tool), "_")
	var instead []byte
	for _, entry := range r.listed["tools/list"] {
		name := wire.Get(entry, "name")
		if bytes.Equal(name, tool) {
			return tool
		}
		if m := renamed().FindStringSubmatch(textOf(name)); m != nil && strings.HasPrefix(own, m[1]) {
			instead = name
		}
	}
	if instead == nil {
		return tool
	}
	return instead
}

const (
	maxOfAKind = 25 // resources to read, and prompts to get
	maxBig     = 3  // tools to call with a big number
)

// planOf makes a plan from the lists of a server. may tells which tools may be called.
func planOf(r *run, may mayCall) *plan {
	p := &plan{}
	add := func(what, name, method string, params []byte) {
		p.requests = append(p.requests, request{what: what, name: name, method: method, params: params})
	}
	for i, entry := range r.listed["resources/list"] {
		if uri := wire.Get(entry, "uri"); i < maxOfAKind && uri != nil {
			add(resources, textOf(uri), "resources/read", fmt.Appendf(nil, `{"uri":%s}`, uri))
		}
	}
	for i, entry := range r.listed["prompts/list"] {
		if name := wire.Get(entry, "name"); i < maxOfAKind && name != nil {
			add(prompts, textOf(name), "prompts/get", fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, name, promptArguments(entry)))
		}
	}
	for _, entry := range r.listed["tools/list"] {
		if !forViews().Match(entry) {
			p.addCalls(entry, may)
		}
	}
	info := r.info
	if info.Has("resources") {
		add(failures, "unknown resource", "resources/read", []byte(`{"uri":"verify:no-such-resource"}`))
	}
	if info.Has("prompts") {
		add(failures, "unknown prompt", "prompts/get", []byte(`{"name":"verify_no_such_prompt"}`))
	}
	return p
}

// addCalls adds the calls of a tool: with valid arguments, with a big number, and with invalid
// arguments.
func (p *plan) addCalls(entry []byte, may mayCall) {
	name, schema := wire.Get(entry, "name"), wire.Get(entry, "inputSchema")
	arguments := example(schema, 0)
	if name == nil || !wire.IsObject(arguments) {
		return
	}
	add := func(what, how string, arguments []byte) {
		if may(entry, arguments) {
			p.requests = append(p.requests, request{what: what, name: textOf(name) + how, method: "tools/call", tool: name, arguments: arguments})
		}
	}
	add(tools, "", arguments)
	// A number may be a count, so only few read-only tools are called with a big one.
	if big := bigNumbers(schema, arguments); big != nil && p.big < maxBig && toolglob.AccessOf(wire.Get(entry, "annotations")) == toolglob.ReadOnly {
		p.big++
		add(bigNumber, "", big)
	}
	for required := range wire.Elements(wire.Get(schema, "required")) {
		if text := textOf(required); text != "" {
			add(failures, ", wrong arguments", fmt.Appendf(nil, `{%s:{"wrong":[]}}`, required))
		}
		break
	}
}

func promptArguments(entry []byte) []byte {
	var members [][]byte
	for argument := range wire.Elements(wire.Get(entry, "arguments")) {
		if string(wire.Get(argument, "required")) == "true" {
			members = append(members, fmt.Appendf(nil, `%s:"1"`, wire.Get(argument, "name")))
		}
	}
	return joined('{', members, '}')
}

func textOf(value []byte) string {
	text, _ := wire.Text(value)
	return text
}
