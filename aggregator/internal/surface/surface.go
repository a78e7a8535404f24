// Package surface is what all surfaces share. A surface is a way in which hosts see and use
// what the servers have: some tools of ours, with their texts. Each one is a folder below
// this one and a line in the table of package exposed.
//
// A surface knows the catalogue and reads the arguments of its tools. It does not know the
// session whose host calls them: what it may ask of that is the interface Session.
package surface

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Surface is one way to see and use the tools. Fields that are zero are what it does
// not have.
type Surface struct {
	Tools []Tool
	// Instructions are for the answer to the handshake.
	Instructions func(v *catalog.View) string
	// HowToCall says how a tool is called here, for a host that called it by its own name.
	HowToCall func(t *catalog.Tool) string
	// HowToRead says how the definition of a tool is read again.
	HowToRead func(tool string) string
	// ReadsOn is the tool that reads on in a result that was cut, where the config cuts any.
	ReadsOn string
	// HowToLoad says how a server that is backing off is started at once.
	HowToLoad func(server string) string
	// Direct says that tools are listed as themselves, and called by their own names.
	Direct bool
	// AnyMethod says that methods which are not MCP's are passed on, too.
	AnyMethod bool
}

// AddTexts adds what s does not have and t has, but for the tools.
func (s *Surface) AddTexts(t Surface) {
	if s.Instructions == nil {
		s.Instructions = t.Instructions
	}
	if s.HowToCall == nil {
		s.HowToCall = t.HowToCall
	}
	if s.HowToRead == nil {
		s.HowToRead = t.HowToRead
	}
	if s.HowToLoad == nil {
		s.HowToLoad = t.HowToLoad
	}
	s.ReadsOn = cmp.Or(s.ReadsOn, t.ReadsOn)
	s.Direct, s.AnyMethod = s.Direct || t.Direct, s.AnyMethod || t.AnyMethod
}

// List returns the entries of tools/list, for a host that takes names of at most longest
// characters.
func (s *Surface) List(v *catalog.View, longest int) (all []json.RawMessage) {
	for _, t := range s.Tools {
		all = append(all, t.Definitions(v, longest)...)
	}
	return all
}

// Tool returns the tool of ours of a name, raw JSON, or with short also of one that was
// made shorter for a host; nil if absent.
func (s *Surface) Tool(rawName json.RawMessage, short bool) *Tool {
	i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name != "" && wire.EqualString(rawName, t.Name) })
	if i < 0 && short {
		name, _ := wire.Text(rawName)
		i = slices.IndexFunc(s.Tools, func(t Tool) bool { return catalog.IsShort(name, t.Name) })
	}
	if i < 0 {
		return nil
	}
	return &s.Tools[i]
}

// NotShown answers a call of a tool by a name that is not listed. If a tool of ours can
// call it, the answer says how.
func (s *Surface) NotShown(v *catalog.View, name string) string {
	t := Named(v, name)
	if t == nil {
		t, _ = v.OfLeaf(name)
	}
	if t != nil && s.HowToCall != nil {
		return fmt.Sprintf("Unknown tool: %s. Call it through %s", name, s.HowToCall(t))
	}
	if why := catalog.WhyHeld(v, name); why != "" {
		return fmt.Sprintf("Unknown tool: %s. The server lists it, but it is left out: %s", name, why)
	}
	if info, ok := v.Server(v.ServerOf(name)); ok && info.Down != "" {
		return fmt.Sprintf("Unknown tool: %s. Its server %s could not be started: %s", name, info.Called, info.Down)
	}
	return "Unknown tool: " + name
}

// A Tool is what a surface puts into tools/list: one tool of ours, or those of servers as
// themselves. One of ours answers its calls, or calls a tool of a server.
type Tool struct {
	Name string // of one tool of ours
	// Definitions returns the entries of tools/list, for a host that takes names of at most
	// longest characters.
	Definitions func(v *catalog.View, longest int) []json.RawMessage
	// Answer answers a call.
	Answer func(c *Call)
	// Read reads from the arguments of a call the name of the tool that is to be called and
	// its input, which is part of the arguments if it can be.
	Read   func(arguments json.RawMessage, outline *wire.Outline) (name string, input json.RawMessage, err error)
	Target *Target
}

// A Target is how the tools of servers are called in one way: through a tool of ours, or
// in the arguments of one.
type Target struct {
	// Surface is the name of the surface that it is of.
	Surface string
	// Find returns the tool of a name, nil where the view has none. Then server is the one
	// whose tool it would be, "" if that is not known.
	Find func(v *catalog.View, name string) (t *catalog.Tool, server string)
	// Unknown answers a name that no tool has; nil is as discover does.
	Unknown func(v *catalog.View, name string) string
	// Refuse says why a tool is not called in this way, "" if it is; nil refuses none.
	Refuse func(t *catalog.Tool) string
	// ShowInput shows the input schema of a tool to a model whose input did not fit it.
	ShowInput func(t *catalog.Tool) string
	// Check has the input checked before the call. It says how the schema is read.
	Check func(name string) string
	// Verbatim says that the params of the call are the tool's, but for the name.
	Verbatim bool
	// Nested says that the name may be that of a tool of ours.
	Nested bool
	// Program says that no model reads the answer: failures are errors, and a result is
	// whole, with what is to be said of it in its _meta.
	Program bool
}

// A Session is what a surface may ask of the session whose host called a tool.
type Session interface {
	// View returns the catalogue as the host may see it.
	View() *catalog.View
	// Show notes that the model can read the definition of a tool in the answer.
	Show(t *catalog.Tool)
	// Reply answers the call, once.
	Reply(result json.RawMessage, err error)
	// Go calls f on a goroutine of its own.
	Go(f func())
	// Wait answers a question when what it needs is listed.
	Wait(q Question)
	// Offered reports whether there is a server that was not given up. retry has one that
	// was given up tried again.
	Offered(server string, retry bool) bool
	// GivenUp says why a server is not offered any more, "" of any other.
	GivenUp(server string) string
	// Explain puts an error in words for a model.
	Explain(err error) string
	// Send makes a request inside the call. Its tools are called by the target.
	Send(method string, params json.RawMessage, by *Target, done func(result json.RawMessage, err error))
	// Part returns a session whose answers go to done: for a part of what the call asks.
	Part(done func(result json.RawMessage, err error)) Session
	// Parallel returns a session for parts that run at the same time: they have no progress,
	// and do not go on where an earlier call asked the host.
	Parallel() Session
	// Asks reports whether a result is a question to the host.
	Asks(result json.RawMessage) bool
	// Forget drops the question that a result is.
	Forget(result json.RawMessage)
	// RunScript answers the call with what a script returns.
	RunScript(source string, args []string)
	// Kept finds a result that was kept because it was cut, with the limit of its tool, in
	// characters. ok is false if absent.
	Kept(handle string, found func(whole json.RawMessage, limit int, ok bool))
}

// A Question is answered from what servers list. It waits for servers that are starting and
// for lists that are being fetched again.
type Question struct {
	// Server is the one that the question is about, "" all. It is started if nothing is known
	// of it, or with Load in any case.
	Server string
	Load   bool
	// Known ends the wait when it reports true; nil is that only the servers end it.
	Known func() bool
	// Answer answers the request, whose params are a copy then.
	Answer func()
	// Failed takes the error if the server could not be started. Where it is nil or reports
	// false, the error is the answer.
	Failed func(err error) bool
}

// A Call is a call of a tool of ours.
type Call struct {
	Session
	Tool      string          // its name
	Arguments json.RawMessage // part of the host's line until the question is answered
}

// Text answers with texts, of which empty ones are left out.
func (c *Call) Text(texts ...string) { c.Reply(results.Text(texts...), nil) }

// Fail answers with an error for the model.
func (c *Call) Fail(text string) { c.Reply(results.Error(text), nil) }

// On returns the call on another session, such as one for a part of it.
func (c *Call) On(s Session) *Call { return &Call{Session: s, Tool: c.Tool, Arguments: c.Arguments} }

// Refuse answers a call whose arguments are wrong. What is refused was not passed on.
func (c *Call) Refuse(err error) {
	c.Fail(fmt.Sprintf("%s: %v (outcome not_sent: nothing was called)", c.Tool, err))
}

// UnknownServer says that a server is not offered, and which are.
func UnknownServer(s Session, name string) string {
	return s.View().Texts().UnknownServer(name) + s.GivenUp(name)
}

// UnknownTool answers the name of a tool that does not exist, for a host that sees
// discover.
func UnknownTool(s Session, name string) string {
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

// Named returns the tool of a name, or the one that a name spelled otherwise can only
// mean; nil if absent.
func Named(v *catalog.View, name string) *catalog.Tool {
	if t, ok := v.Tool(name); ok {
		return t
	}
	t, _ := v.Meant(name)
	return t
}

// FindCalled finds what a name can only mean, for targets of which programs write the names.
func FindCalled(v *catalog.View, name string) (t *catalog.Tool, server string) {
	if t, ok := v.Called(name); ok {
		return t, ""
	}
	return nil, v.ServerFor(name)
}

// ReadOnly are the annotations of a tool of ours that only shows what there is.
const ReadOnly = `{"readOnlyHint":true,"openWorldHint":false}`

// Define returns an entry of tools/list for a tool of ours; annotations may be empty.
// Hosts that search for tools are kept from hiding it.
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
