// Package surface holds the code that all surfaces share. A surface is a way to present the servers'
// tools to hosts: some tools of dynmcp's own, with their texts. The core has discover and direct; each
// other one is a [Kind] of a module.
//
// A surface knows the catalogue and reads the arguments of its tools. It knows the session of the
// calling host only through the interface Session.
package surface

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/directname"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A Surface is one way to see and use the tools. Zero fields are features that it lacks.
type Surface struct {
	Tools []Tool
	// Texts are the texts of the surface. If several surfaces are on, the first that has a text counts.
	Texts []Texts
	// ReadsOn is the tool that reads on in a result that was cut, if the config cuts any.
	ReadsOn string
	// Direct reports that tools are listed and called by their own names.
	Direct bool
	// Tree is that of a surface which has one, nil otherwise.
	Tree Tree
	// AnyMethod reports that unknown methods are forwarded, too.
	AnyMethod bool
}

// Texts are texts of a surface, "" if it has none.
type Texts interface {
	// Instructions returns the instructions in the answer to the handshake.
	Instructions(v *catalog.View) string
	// HowToCall explains how to call a tool here, for a host that called it by its own name.
	HowToCall(t *catalog.Tool) string
	// HowToRead explains how to read the definition of a tool again.
	HowToRead(tool string) string
	// HowToLoad explains how to start a server at once that is backing off.
	HowToLoad(server string) string
}

// NoTexts has no texts. Surfaces embed it for those that they lack.
type NoTexts struct{}

func (NoTexts) Instructions(*catalog.View) string { return "" }
func (NoTexts) HowToCall(*catalog.Tool) string    { return "" }
func (NoTexts) HowToRead(string) string           { return "" }
func (NoTexts) HowToLoad(string) string           { return "" }

// Add adds the texts and features, not the tools, of another surface.
func (s *Surface) Add(t Surface) {
	s.Texts = append(s.Texts, t.Texts...)
	s.ReadsOn = cmp.Or(s.ReadsOn, t.ReadsOn)
	if t.Tree != nil {
		s.Tree = t.Tree
	}
	s.Direct, s.AnyMethod = s.Direct || t.Direct, s.AnyMethod || t.AnyMethod
}

// Text returns the first text that the surface has, "" if there is none.
func (s *Surface) Text(of func(Texts) string) (text string) {
	for _, t := range s.Texts {
		if text = of(t); text != "" {
			break
		}
	}
	return text
}

// List returns the entries of tools/list, for a host that accepts names of at most longest
// characters.
func (s *Surface) List(v *catalog.View, longest int) (all []json.RawMessage) {
	for _, t := range s.Tools {
		all = append(all, t.Definitions(v, longest)...)
	}
	return all
}

// Tool returns dynmcp's own tool of a name, raw JSON, or with short also one by a name that was
// shortened for a host; nil if there is none.
func (s *Surface) Tool(rawName json.RawMessage, short bool) *Tool {
	i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name != "" && wire.EqualString(rawName, t.Name) })
	if i < 0 && short {
		name, _ := wire.Text(rawName)
		i = slices.IndexFunc(s.Tools, func(t Tool) bool { return directname.IsShort(name, t.Name) })
	}
	if i < 0 {
		return nil
	}
	return &s.Tools[i]
}

// NotShown answers a call of a tool by a name that is not listed. If one of dynmcp's own tools can call
// it, the answer explains how.
func (s *Surface) NotShown(v *catalog.View, name string) string {
	t := Named(v, name)
	if t == nil {
		t, _ = v.OfLeaf(name)
	}
	if t != nil {
		if how := s.Text(func(texts Texts) string { return texts.HowToCall(t) }); how != "" {
			return fmt.Sprintf("Unknown tool: %s. Call it through %s", name, how)
		}
	}
	if why := catalog.WhyNotApproved(v, name); why != "" {
		return fmt.Sprintf("Unknown tool: %s. The server lists it, but it is left out: %s", name, why)
	}
	if info, ok := v.Server(v.ServerOf(name)); ok && info.Down != "" {
		return fmt.Sprintf("Unknown tool: %s. Its server %s could not be started: %s", name, info.Called, info.Down)
	}
	return "Unknown tool: " + name
}

// A Tool is an item of tools/list: one of dynmcp's own tools, or the servers' tools under their own
// names. One of dynmcp's own answers its calls, or calls a server's tool.
type Tool struct {
	Name string // of a tool of dynmcp's own
	// Definitions returns the entries of tools/list, for a host that accepts names of at most longest
	// characters.
	Definitions func(v *catalog.View, longest int) []json.RawMessage
	// Answer answers a call.
	Answer func(c *Call)
	// Read extracts the name of the tool to call and its input from the arguments of a call. The input
	// is a slice of the arguments if possible.
	Read   func(arguments json.RawMessage, outline *wire.Outline) (name string, input json.RawMessage, err error)
	Target *Target
}

// A Target defines one way to call the servers' tools: through one of dynmcp's own tools, or in the
// arguments of one.
type Target struct {
	Surface string // its name
	Way     Way
	// ShowsInput shows the input schema of a tool to a model whose input did not match it.
	ShowsInput bool
	// Checks enables a check of the input before the call.
	Checks bool
	// Verbatim reports that the params of the call are the tool's, except for the name.
	Verbatim bool
	// Nested reports that the name may be that of one of dynmcp's own tools.
	Nested bool
	// Program reports that no model reads the answer: failures are errors, and a result is whole,
	// with texts for the model in its _meta.
	Program bool
}

// A Way has the names of a Target, and its texts.
type Way interface {
	// Find returns the tool of a name, nil if the view has none. server is then the server that
	// would have it, "" if unknown.
	Find(v *catalog.View, name string) (t *catalog.Tool, server string)
	// Unknown answers an unknown name; "" is as in discover.
	Unknown(v *catalog.View, name string) string
	// Reject returns why a tool is not called in this way, "" if it is.
	Reject(t *catalog.Tool) string
	// ShowInput returns the input schema for the model, "" if it cannot be shown.
	ShowInput(t *catalog.Tool) string
	// HowToFit explains how to read the schema that the input does not fit.
	HowToFit(name string) string
}

// AnyTool is a Way by the only name that a tool can have, with no texts. Others embed it.
type AnyTool struct{}

func (AnyTool) Find(v *catalog.View, name string) (t *catalog.Tool, server string) {
	return FindCalled(v, name)
}
func (AnyTool) Unknown(*catalog.View, string) string { return "" }
func (AnyTool) Reject(*catalog.Tool) string          { return "" }
func (AnyTool) ShowInput(*catalog.Tool) string       { return "" }
func (AnyTool) HowToFit(string) string               { return "" }

// A Catalogue is what a host can see of the servers.
type Catalogue interface {
	View() *catalog.View
	// GivenUp explains why a server is no longer offered, "" if it is.
	GivenUp(server string) string
}

// A Session is the part of a host's session that a surface may use in a call.
type Session interface {
	Catalogue
	// Show records that the answer contains the definition of a tool.
	Show(t *catalog.Tool)
	// Reply answers the call, once.
	Reply(result json.RawMessage, err error)
	// Go calls f on a goroutine of its own.
	Go(f func())
	// Wait answers a question once the required listings are available.
	Wait(q Question)
	// ReadsData reports whether structured content is read by the host itself, and not shown to a model.
	ReadsData() bool
	// Offered reports whether there is a server that was not evicted. With retry, an evicted one is
	// tried again.
	Offered(server string, retry bool) bool
	// Preflight reports whether the tool of a name can be called now, and says why not, or what such a
	// call depends on. It starts nothing.
	Preflight(name string) (can bool, says string)
	// Explain describes an error for a model.
	Explain(err error) string
	// Send makes a request inside the call. Its tools are called by the target.
	Send(method string, params json.RawMessage, by *Target, done func(result json.RawMessage, err error))
	// Part returns a session for a part of the call, whose answers go to done.
	Part(done func(result json.RawMessage, err error)) Session
	// Parallel returns a session for concurrent parts: they report no progress, and do not continue
	// an earlier call that asked the host.
	Parallel() Session
	// Asks reports whether a result is a question to the host.
	Asks(result json.RawMessage) bool
	// Forget drops the question in a result.
	Forget(result json.RawMessage)
	// Found returns texts for what a search finds besides tools.
	Found(queries []string, server string) []string
	// Resource returns the URI of the resource that a name means which is no tool's.
	Resource(name string) (uri string, ok bool)
	// Long returns the call for an answer that makes requests of its own while it runs.
	Long() Long
	// Kept finds a stored result that was cut, and the limit of its tool, in characters. ok is false
	// if there is none.
	Kept(handle string, found func(whole json.RawMessage, limit int, ok bool))
}

// A Question is answered from the servers' listings. It waits for servers that are starting and for
// lists that are being refreshed.
type Question struct {
	// Server is the server of the question, "" for all. It is started if nothing is known about it,
	// or if Load is set.
	Server string
	Load   bool
	// Missing is the name of a tool that Server has not listed, as far as known: a running server is
	// asked for its tools again.
	Missing string
	// Known ends the wait when it reports true; if it is nil, only the servers end it.
	Known func() bool
	// Answer answers the request, whose params are then a copy.
	Answer func()
	// Failed handles the error if the server could not be started. If it is nil or reports
	// false, the error is the answer.
	Failed func(err error) bool
}

// A Call is a call of one of dynmcp's own tools.
type Call struct {
	Session
	Tool      string          // its name
	Arguments json.RawMessage // part of the host's line until the question is answered
}

// Text answers with texts, without empty ones.
func (c *Call) Text(texts ...string) { c.Reply(results.Text(texts...), nil) }

// Fail answers with an error for the model: nothing was called.
func (c *Call) Fail(text string) { c.Reply(results.Refusal(text), nil) }

// On returns the call with another session, such as one for a part of it.
func (c *Call) On(s Session) *Call { return &Call{Session: s, Tool: c.Tool, Arguments: c.Arguments} }

// InvalidArguments answers a call with invalid arguments. Nothing was forwarded.
func (c *Call) InvalidArguments(err error) {
	c.Fail(fmt.Sprintf("%s: %v", c.Tool, err))
}

// UnknownServer answers that a server is not offered, and lists those that are.
func UnknownServer(s Catalogue, name string) string {
	return s.View().Texts().UnknownServer(name) + s.GivenUp(name)
}

// UnknownTool answers the name of a tool that does not exist, for a host with discover.
func UnknownTool(s Catalogue, name string) string {
	view := s.View()
	text := view.Texts().Unknown(name)
	if view.ServerOf(name) == "" {
		for i := range name {
			if name[i] == '/' {
				text += s.GivenUp(name[:i])
			}
		}
	}
	return text
}

// Named returns the tool of a name, or the only one that a differently spelled name can mean; nil if
// there is none.
func Named(v *catalog.View, name string) *catalog.Tool {
	if t, ok := v.Tool(name); ok {
		return t
	}
	t, _ := v.Guess(name)
	return t
}

// FindCalled finds the only tool that a name can mean, for targets whose names programs write.
func FindCalled(v *catalog.View, name string) (t *catalog.Tool, server string) {
	if t, ok := v.Called(name); ok {
		return t, ""
	}
	return nil, v.ServerFor(name)
}

// ReadOnly are the annotations of a tool of dynmcp's own that only reads the catalogue.
const ReadOnly = `{"readOnlyHint":true,"openWorldHint":false}`

// Define returns an entry of tools/list for a tool of dynmcp's own; annotations may be empty. It
// prevents hosts that search for tools from hiding it.
func Define(name, description, input, annotations string) json.RawMessage {
	out := fmt.Appendf(nil, `{"name":%q,"description":%s,"inputSchema":%s`, name, wire.Quote(description), input)
	if annotations != "" {
		out = fmt.Appendf(out, `,"annotations":%s`, annotations)
	}
	return append(out, `,"_meta":{"anthropic/alwaysLoad":true}}`...)
}

// Fixed returns the definitions of a tool that are the same for every view.
func Fixed(name, description, input, annotations string) func(*catalog.View, int) []json.RawMessage {
	all := []json.RawMessage{Define(name, description, input, annotations)}
	return func(*catalog.View, int) []json.RawMessage { return all }
}

// Failed returns the answer to a call whose inner request has failed: an upstream's own error
// unchanged, any other as text for the model.
func Failed(err error) (json.RawMessage, error) {
	var rpc *wire.Error
	var failure *transports.Failure
	if !errors.As(err, &failure) && errors.As(err, &rpc) && rpc.Raw != nil {
		return nil, rpc
	}
	return results.Error(ErrorText(err)), nil
}

// ErrorText describes the error of an inner request for a model.
func ErrorText(err error) string {
	var rpc *wire.Error
	var failure *transports.Failure
	switch {
	case errors.As(err, &failure):
		return failure.Text()
	case !errors.As(err, &rpc):
		return err.Error()
	}
	text := rpc.Message
	switch outcome, ok := transports.OutcomeOf(rpc); {
	case rpc.Raw != nil:
		text = fmt.Sprintf("the server answered with the error %d: %s", rpc.Code, rpc.Message)
	case ok && rpc.Code > 0: // dynmcp's own: the message says it
	case outcome == transports.NotSent, rpc.Data == nil && rpc.Code == wire.CodeMethodNotFound:
		text = results.NotCalled(text)
	case ok:
		text += fmt.Sprintf(" (outcome %s)", outcome)
	}
	if hint := transports.HintOf(rpc); hint != "" && rpc.Raw == nil {
		text += "\nhint: " + hint
	}
	return text
}
