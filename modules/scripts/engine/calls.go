package engine

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dop251/goja"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// ask makes a call, at once or after another one was answered, and returns its promise.
func (s *script) ask(f *flight) goja.Value {
	promise, resolve, reject := s.vm.NewPromise()
	f.resolve, f.reject = resolve, reject
	f.at = at(s.vm.CaptureCallStack(0, nil), "")
	if s.calls++; s.calls > s.Calls {
		f.at.Message = fmt.Sprintf("not called: the script has made %d calls, as many as it may", s.Calls)
		f.at.Outcome = NotSent
		s.fail(f, *f.at)
		return s.vm.ToValue(promise)
	}
	if len(s.inFlight) >= s.AtOnce {
		s.waiting = append(s.waiting, f)
	} else {
		s.sendCall(f)
	}
	return s.vm.ToValue(promise)
}

func (s *script) sendCall(f *flight) {
	s.last++
	f.ID = s.last
	s.inFlight[f.ID] = f
	s.send(Event{Call: &f.Call})
}

// handleAnswer settles the promise of an answered call.
func (s *script) handleAnswer(a Answer) {
	f := s.inFlight[a.ID]
	if f == nil {
		return
	}
	delete(s.inFlight, a.ID)
	if len(s.waiting) > 0 {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.sendCall(next)
	}
	if a.Error != nil {
		s.fail(f, *a.Error)
		return
	}
	if depth, _ := wire.Nesting(a.Result); depth > maxDepth {
		s.fail(f, Failure{Message: fmt.Sprintf("the result nests deeper than %d", maxDepth), Outcome: Ran})
		return
	}
	var value goja.Value
	switch f.Kind {
	case Tool:
		if bytes.Equal(wire.Get(a.Result, "isError"), []byte("true")) {
			s.fail(f, Failure{Message: s.errorText(a), Outcome: Ran})
			return
		}
		if value = s.decodeResult(a, "content"); !f.raw {
			value = s.simplify(value.ToObject(s.vm), "content")
		}
	case Resource:
		value = s.simplify(s.decodeResult(a, "contents").ToObject(s.vm), "contents")
	default:
		value = s.decode(a.Result)
	}
	if err := f.resolve(value); err != nil {
		panic(err)
	}
}

// fail rejects the promise of a call with an Error that has the position of the call.
func (s *script) fail(f *flight, why Failure) {
	v := s.must(s.newError(goja.Undefined(), s.vm.ToValue(why.Message)))
	if why.Server == "" && f.Kind == Tool {
		why.Server, why.Tool, _ = strings.Cut(f.Name, "/")
	}
	o := v.ToObject(s.vm)
	for _, of := range [][2]string{{"server", why.Server}, {"tool", why.Tool}, {"outcome", why.Outcome}} {
		if of[1] != "" {
			s.set(o, of[0], s.vm.ToValue(of[1]))
		}
	}
	const name = "ToolError"
	stack := fmt.Sprintf("%s: %s\n\tat %s:%d:%d", name, why.Message, placed, f.at.Line, f.at.Column)
	for name, text := range map[string]string{"name": name, "stack": stack} {
		_ = o.DefineDataProperty(name, s.vm.ToValue(text), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	if err := f.reject(v); err != nil {
		panic(err)
	}
}

// decodeResult decodes a result, with handles in place of its images and blobs.
func (s *script) decodeResult(a Answer, list string) goja.Value {
	result := s.decode(a.Result).ToObject(s.vm)
	if len(a.Blobs) == 0 {
		return result
	}
	blocks := result.Get(list).ToObject(s.vm)
	for _, blob := range a.Blobs {
		handle := s.vm.NewObject()
		s.set(handle, "type", s.vm.ToValue(blob.Type))
		s.set(handle, "mimeType", s.vm.ToValue(blob.MIME))
		s.set(handle, "size", s.vm.ToValue(blob.Size))
		s.set(handle, "toString", s.vm.ToValue(blob.String))
		s.set(handle, "toJSON", s.vm.ToValue(blob.String))
		s.handles[handle] = blob
		_ = blocks.Set(fmt.Sprint(blob.Index), handle)
	}
	return result
}

// simplify returns the useful part of a result: its structured content, or its text, parsed if it
// is an object or an array, or its only block, or everything.
func (s *script) simplify(result *goja.Object, list string) goja.Value {
	if structured := result.Get("structuredContent"); list == "content" && structured != nil && !goja.IsNull(structured) {
		return structured
	}
	blocks, ok := result.Get(list).(*goja.Object)
	if !ok || blocks.ClassName() != "Array" {
		return goja.Undefined()
	}
	var all []any
	var texts []string
	for _, i := range blocks.Keys() {
		block := blocks.Get(i)
		if text, ok := s.textOf(block); ok {
			texts = append(texts, text)
			block = s.vm.ToValue(text)
		}
		all = append(all, block)
	}
	switch {
	case len(texts) == len(all):
		return s.parsed(strings.Join(texts, "\n"))
	case len(all) == 1:
		return all[0].(goja.Value)
	}
	return s.vm.NewArray(all...)
}

// parsed returns the object or array in a JSON text, or the text itself.
func (s *script) parsed(text string) goja.Value {
	if start := strings.TrimSpace(text); start != "" && (start[0] == '{' || start[0] == '[') {
		if v, ok := s.decodeValid([]byte(text)); ok {
			return v
		}
	}
	return s.vm.ToValue(text)
}

// textOf returns the text of a block, or of the resource in it.
func (s *script) textOf(v goja.Value) (string, bool) {
	block, ok := v.(*goja.Object)
	if !ok {
		return "", false
	}
	if _, handle := s.handles[block]; handle {
		return "", false
	}
	if resource, ok := block.Get("resource").(*goja.Object); ok {
		block = resource
	}
	if v := block.Get("text"); v != nil {
		text, ok := v.Export().(string)
		return text, ok
	}
	return "", false
}

// errorText returns the text of a result with isError.
func (s *script) errorText(a Answer) string {
	result := s.decode(a.Result).ToObject(s.vm)
	_ = result.Delete("structuredContent")
	if v := s.simplify(result, "content"); !absent(v) && v.String() != "" {
		return s.format(v, 64<<10)
	}
	return "the tool says that it failed, and not why"
}
