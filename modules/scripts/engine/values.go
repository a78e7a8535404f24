package engine

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// maxDepth is how deep values that pass between a script and the engine may nest.
const maxDepth = 500

// maxSafe is the largest integer whose neighbours a Number represents too.
const maxSafe = 1<<53 - 1

// decode converts JSON, whose depth is at most maxDepth, to a value.
func (s *script) decode(text []byte) goja.Value {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return goja.Undefined()
	}
	switch text[0] {
	case '{':
		object := s.vm.NewObject()
		for name, value := range wire.Members(text) {
			key, _ := wire.Text(name)
			s.set(object, key, s.decode(value))
		}
		return object
	case '[':
		var items []any
		for item := range wire.Elements(text) {
			items = append(items, s.decode(item))
		}
		return s.vm.NewArray(items...)
	case '"':
		content, _ := wire.Text(text)
		return s.vm.ToValue(content)
	case 't', 'f':
		return s.vm.ToValue(text[0] == 't')
	case 'n':
		return goja.Null()
	}
	return s.number(string(text))
}

// decodeValid is decode for any text. It reports whether the text is acceptable JSON.
func (s *script) decodeValid(text []byte) (goja.Value, bool) {
	if !wire.Valid(text) {
		return nil, false
	}
	if depth, _ := wire.Nesting(text); depth > maxDepth {
		return nil, false
	}
	return s.decode(text), true
}

// number returns a Number, or an exact alternative: a BigInt for an integer, otherwise a text.
func (s *script) number(text string) goja.Value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && -maxSafe <= n && n <= maxSafe {
		return s.vm.ToValue(n)
	}
	if len(text) <= 1000 {
		if n, ok := new(big.Int).SetString(text, 10); ok {
			return s.vm.ToValue(n)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) > maxSafe && !exact(text, f) {
		return s.vm.ToValue(text)
	}
	return s.vm.ToValue(f)
}

// exact reports whether a Number equals a number in JSON that is not out of its range.
func exact(text string, f float64) bool {
	if len(text) > 1000 {
		return false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return false
	}
	_, same := r.Float64()
	return same
}

// An encoder writes values in JSON, as JSON.stringify does, and also BigInts, errors, maps and sets.
// It panics with a value of the runtime, as if the script had thrown it.
type encoder struct {
	*script
	text    []byte
	limit   int
	blobs   []int         // ids of the blobs in the value
	exact   bool          // refuses Numbers that may have been rounded, and promises
	waits   bool          // writes the results of promises
	pending *goja.Promise // a pending or rejected one, if waits is set
	parents []*goja.Object
}

// encode writes a value in JSON.
func (e *encoder) encode(v goja.Value) {
	e.value(v)
	e.check()
}

func (e *encoder) check() {
	if len(e.text) > e.limit {
		e.throw("the value is over %d bytes in JSON", e.limit)
	}
}

// The types that goja exports maps, sets and promises as: nothing else distinguishes them.
var (
	typeOfMap     = reflect.TypeFor[[][2]any]()
	typeOfSet     = reflect.TypeFor[[]any]()
	typeOfPromise = reflect.TypeFor[*goja.Promise]()
)

// absent reports whether a value is left out of an object.
func absent(v goja.Value) bool {
	if v == nil || goja.IsUndefined(v) {
		return true
	}
	if _, ok := v.(*goja.Symbol); ok {
		return true
	}
	_, function := goja.AssertFunction(v)
	return function
}

func (e *encoder) value(v goja.Value) {
	e.check()
	if absent(v) {
		e.text = append(e.text, "null"...)
		return
	}
	if object, ok := v.(*goja.Object); ok {
		e.object(object)
		return
	}
	switch x := v.Export().(type) {
	case nil:
		e.text = append(e.text, "null"...)
	case bool:
		e.text = strconv.AppendBool(e.text, x)
	case string:
		e.text = wire.AppendQuote(e.text, x)
	case *big.Int:
		e.text = x.Append(e.text, 10)
	default:
		e.number(v)
	}
}

func (e *encoder) number(v goja.Value) {
	f := v.ToFloat()
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		e.text = append(e.text, "null"...)
	case e.exact && math.Abs(f) > maxSafe && math.Abs(f) < 1e21:
		e.throw("%s may have been rounded: write it as a BigInt, %.0fn", v.String(), f)
	default:
		e.text = append(e.text, v.String()...)
	}
}

func (e *encoder) object(o *goja.Object) {
	if blob, ok := e.handles[o]; ok {
		e.blobs = append(e.blobs, blob.ID)
		e.text = wire.AppendQuote(e.text, blob.String())
		return
	}
	if len(e.parents) >= maxDepth {
		e.throw("the value nests deeper than %d", maxDepth)
	}
	if slices.Contains(e.parents, o) {
		e.throw("the value contains itself")
	}
	if o.ExportType() == typeOfPromise {
		e.promise(o.Export().(*goja.Promise))
		return
	}
	e.parents = append(e.parents, o)
	defer func() { e.parents = e.parents[:len(e.parents)-1] }()
	if toJSON, ok := goja.AssertFunction(o.Get("toJSON")); ok {
		e.value(e.must(toJSON(o)))
		return
	}
	if kind := o.ExportType(); kind == typeOfMap || kind == typeOfSet && o.ClassName() != "Array" {
		o = e.must(e.arrayFrom(goja.Undefined(), o)).ToObject(e.vm)
	}
	switch o.ClassName() {
	case "Array":
		e.array(o)
	case "Number", "String", "Boolean":
		e.value(e.vm.ToValue(o.Export()))
	case "Error":
		first := []string{"name", "message"} // an Error has them even if it did not set them
		own := slices.DeleteFunc(o.Keys(), func(name string) bool { return slices.Contains(first, name) })
		e.members(o, append(first, own...))
	default:
		e.members(o, o.Keys())
	}
}

func (e *encoder) promise(p *goja.Promise) {
	switch {
	case e.exact:
		e.throw("a promise cannot be an argument: await it")
	case !e.waits:
		e.text = wire.AppendQuote(e.text, promised)
	case p.State() == goja.PromiseStateFulfilled:
		e.value(p.Result())
	default:
		e.pending = p
	}
}

// promised is the printed form of a promise.
const promised = "[a promise: await it]"

func (e *encoder) array(o *goja.Object) {
	length := o.Get("length").ToInteger()
	e.text = append(e.text, '[')
	for i := range length {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		e.value(o.Get(strconv.FormatInt(i, 10)))
	}
	e.text = append(e.text, ']')
}

func (e *encoder) members(o *goja.Object, names []string) {
	e.text = append(e.text, '{')
	first := true
	for _, name := range names {
		v := o.Get(name)
		if absent(v) {
			continue
		}
		if !first {
			e.text = append(e.text, ',')
		}
		first = false
		e.text = append(wire.AppendQuote(e.text, name), ':')
		e.value(v)
	}
	e.text = append(e.text, '}')
}

// String returns the printed form of a blob.
func (b Blob) String() string {
	return strings.Join(strings.Fields(fmt.Sprintf("[%s %s, %d bytes]", b.Type, b.MIME, b.Size)), " ")
}

// format returns the printed form of a value.
func (s *script) format(v goja.Value, limit int) (text string) {
	if o, ok := v.(*goja.Object); ok && o.ClassName() != "Error" && o.ClassName() != "Function" {
		if blob, ok := s.handles[o]; ok {
			return blob.String()
		}
		if o.ExportType() == typeOfPromise {
			return promised
		}
		e := &encoder{script: s, limit: limit}
		if s.vm.Try(func() { e.encode(o) }) == nil {
			return string(e.text)
		}
	}
	if s.vm.Try(func() { text = v.String() }) != nil {
		return "[a value without a text]"
	}
	return text
}
