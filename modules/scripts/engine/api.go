package engine

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/dop251/goja"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/wire"
)

//go:embed prelude.js
var source string

var prelude = sync.OnceValue(func() *goja.Program { return goja.MustCompile("dynmcp.js", source, false) })

// install adds the API of scripts to a new runtime.
func (s *script) install() {
	s.vm.SetPromiseRejectionTracker(func(p *goja.Promise, operation goja.PromiseRejectionOperation) {
		if operation == goja.PromiseRejectionReject {
			s.rejected = append(s.rejected, p)
		} else if i := slices.Index(s.rejected, p); i >= 0 {
			s.rejected = slices.Delete(s.rejected, i, i+1)
		}
	})
	begin, _ := goja.AssertFunction(s.must(s.vm.RunProgram(prelude())))
	isHandle := func(o *goja.Object) bool { _, ok := s.handles[o]; return ok }
	s.must(begin(goja.Undefined(), s.vm.ToValue(isHandle), s.vm.ToValue(property), s.vm.ToValue(recode)))
	s.newError, _ = goja.AssertFunction(s.vm.Get("Error"))
	s.arrayFrom, _ = goja.AssertFunction(s.vm.Get("Array").ToObject(s.vm).Get("from"))
	define := func(name string, value any) { _ = s.vm.Set(name, value) }
	note := s.vm.ToValue(func(call goja.FunctionCall) goja.Value {
		s.threw.value, s.threw.at = call.Argument(0), at(s.vm.CaptureCallStack(0, nil), "")
		return call.Argument(0)
	})
	_ = s.vm.GlobalObject().DefineDataProperty(thrower, note, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	define("setTimeout", s.setTimeout)
	define("clearTimeout", s.clearTimeout)
	console := s.vm.NewObject()
	for _, name := range []string{"log", "info", "warn", "error", "debug", "dir", "table", "trace"} {
		_ = console.Set(name, s.print)
	}
	define("console", console)
	call := s.vm.ToValue(func(call goja.FunctionCall) goja.Value { return s.callTool(call, false) }).ToObject(s.vm)
	_ = call.Set("raw", func(call goja.FunctionCall) goja.Value { return s.callTool(call, true) })
	define("call", call)
	for _, kind := range []string{Search, Describe, Resource} {
		define(kind, func(call goja.FunctionCall) goja.Value {
			text, ok := call.Argument(0).Export().(string)
			if !ok {
				s.throw("%s needs a string", kind)
			}
			return s.ask(&flight{Call: Call{Kind: kind, Name: text}})
		})
	}
}

// setGlobals sets the globals that differ between scripts.
func (s *script) setGlobals() {
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		args[i] = arg
	}
	_ = s.vm.Set("args", s.vm.NewArray(args...))
	_ = s.vm.Set("tools", s.vm.NewDynamicObject(&servers{s}))
}

// print is console.log.
func (s *script) print(call goja.FunctionCall) goja.Value {
	var line strings.Builder
	for i, arg := range call.Arguments {
		if i > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(s.format(arg, s.Output))
	}
	line.WriteByte('\n')
	text := line.String()
	used := len(text)
	if rest := s.Output - s.printed; used > rest {
		text = strings.ToValidUTF8(text[:rest], "")
		s.dropped += used - len(text)
		used = rest
	}
	s.printed += used // nothing is printed after a line that was cut
	if text != "" {
		s.send(Event{Printed: text})
	}
	return goja.Undefined()
}

// servers is the object tools: it has a property for each server.
type servers struct{ *script }

var otherThanIdentifier = lazyregexp.New(`[^A-Za-z0-9_$]`)

// Named returns the index of the name that a property of a script stands for: the same text, or the only
// name that has it with _ in place of what cannot follow a dot. It is -1 if there is none.
func Named(property string, names []string) int {
	if i := slices.Index(names, property); i >= 0 {
		return i
	}
	means := func(name string) bool { return otherThanIdentifier().ReplaceAllString(name, "_") == property }
	i := slices.IndexFunc(names, means)
	if i >= 0 && slices.ContainsFunc(names[i+1:], means) {
		return -1
	}
	return i
}

// named returns the server for a property, "" if there is none.
func (t *servers) named(key string) string {
	if i := Named(key, t.Servers); i >= 0 {
		return t.Servers[i]
	}
	return ""
}

func (t *servers) Get(key string) goja.Value {
	name := t.named(key)
	if name != "" {
		return t.vm.NewDynamicObject(&toolsOf{t.script, name})
	}
	if key == "then" || key == "toJSON" || t.vm.NewObject().Get(key) != nil {
		return nil // these are looked up on every object
	}
	t.throw("there is no server %q: tools has %s", key, display.Cut(strings.Join(t.Servers, ", "), 500))
	return nil
}

func (t *servers) Set(string, goja.Value) bool { return false }
func (t *servers) Has(key string) bool         { return t.named(key) != "" }
func (t *servers) Delete(string) bool          { return false }
func (t *servers) Keys() []string              { return t.Servers }

// toolsOf is an object of tools: each property is a function that calls the tool of that name.
type toolsOf struct {
	*script
	server string
}

func (t *toolsOf) Get(key string) goja.Value {
	if key == "then" || key == "toJSON" {
		return nil
	}
	return t.vm.ToValue(func(call goja.FunctionCall) goja.Value {
		return t.ask(&flight{Call: Call{Kind: Tool, Name: t.server + "/" + key, Args: t.arguments(call.Argument(0))}})
	})
}

func (t *toolsOf) Set(string, goja.Value) bool { return false }
func (t *toolsOf) Has(string) bool             { return true }
func (t *toolsOf) Delete(string) bool          { return false }
func (t *toolsOf) Keys() []string {
	t.throw("the tools of a server cannot be listed: use await search(\"words\")")
	return nil
}

// callTool implements call, and call.raw.
func (s *script) callTool(call goja.FunctionCall, raw bool) goja.Value {
	name, ok := call.Argument(0).Export().(string)
	if !ok || !strings.Contains(name, "/") {
		s.throw(`call needs the name of a tool, "server/tool", and its arguments`)
	}
	return s.ask(&flight{Call: Call{Kind: Tool, Name: name, Args: s.arguments(call.Argument(1))}, raw: raw})
}

// arguments returns the arguments of a tool in JSON, without rounding numbers.
func (s *script) arguments(v goja.Value) []byte {
	if goja.IsUndefined(v) || goja.IsNull(v) {
		return []byte("{}")
	}
	e := &encoder{script: s, limit: maxReturned, exact: true}
	e.encode(v)
	if len(e.blobs) > 0 {
		s.throw("an image or a blob cannot be an argument")
	}
	if !wire.IsObject(e.text) {
		s.throw("the arguments of a tool are an object: {name: value}")
	}
	return e.text
}
