package wire

import "iter"

// outlined is the size from which ParseOutlined notes the positions of a message's members.
const outlined = 2 << 10

// An Outline holds the positions of the members of a message's params, their arguments, the
// tool_input in those, and a result. They are noted while the message is checked, so that a
// long value need not be scanned again to find the one after it. Its methods return what the
// package's functions of the same names return. Objects that are not noted are searched.
type Outline struct {
	text    []byte // the offsets refer to it
	objects [4]struct {
		at, size int  // offset and length of the object
		complete bool // all its members are noted
	}
	count   int // of objects
	members [32]struct {
		object      int
		name, value Span
	}
	used int // of members
}

// nestedKeys are the members whose own members are noted. Each is within the one before it,
// the first within params.
var nestedKeys = []string{`"arguments"`, `"tool_input"`}

// reserved is the number of slots that an object leaves free for each object around it.
const reserved = 8

// skip is the function skip, and notes the members of the value if it is an object. Those of
// its member nested[0] are noted too, and so on.
func (o *Outline) skip(b []byte, i, depth int, nested []string) (int, error) {
	if i >= len(b) || b[i] != '{' || o.count == len(o.objects) {
		return skip(b, i, depth)
	}
	object := o.count
	o.count++
	o.objects[object].at, o.objects[object].complete = i, true
	start, limit := i, len(o.members)-reserved*object
	end, err := eachMember(b, i, depth+1, func(key []byte, i int) (end int, err error) {
		if len(nested) > 0 && string(key) == nested[0] {
			end, err = o.skip(b, i, depth+1, nested[1:])
		} else {
			end, err = skip(b, i, depth+1)
		}
		if o.used >= limit {
			o.objects[object].complete = false
			return end, err
		}
		m := &o.members[o.used]
		o.used++
		m.object, m.name, m.value = object, Span{cap(b) - cap(key), len(key)}, Span{i, end - i}
		return end, err
	})
	o.objects[object].size = end - start
	return end, err
}

// Spans yields the positions of the members of obj. See the function Spans.
func (o *Outline) Spans(obj []byte) iter.Seq2[Span, Span] {
	return func(yield func(name, value Span) bool) {
		object := o.find(obj)
		if object < 0 {
			spans(obj, Span{}, yield)
			return
		}
		at := o.objects[object].at
		for i := range o.members[:o.used] {
			m := &o.members[i]
			if m.object == object && !yield(Span{m.name.Off - at, m.name.Len}, Span{m.value.Off - at, m.value.Len}) {
				return
			}
		}
	}
}

// find returns the index of obj in o.objects, -1 if its members are not all noted.
func (o *Outline) find(obj []byte) int {
	if o == nil || len(obj) == 0 {
		return -1
	}
	for i, object := range o.objects[:o.count] {
		if object.complete && &o.text[object.at] == &obj[0] && object.size == len(obj) {
			return i
		}
	}
	return -1
}
