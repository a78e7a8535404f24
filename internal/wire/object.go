package wire

import (
	"bytes"
	"iter"
	"slices"
)

// An Object is the text of a JSON object. Known is the position of one of its values, or the
// zero Span. A search skips that value without reading it: the arguments of a call may be
// megabytes among members of a few bytes.
type Object struct {
	Text  []byte
	Known Span
}

// ObjectOf returns the object whose known value is part, a slice of text.
func ObjectOf(text, part []byte) Object { return Object{text, Locate(text, part)} }

// Spans yields the positions of the members. See the function Spans.
func (o Object) Spans() iter.Seq2[Span, Span] {
	return func(yield func(name, value Span) bool) { spans(o.Text, o.Known, yield) }
}

// Find returns the position of the value at the end of a path of names: the first names
// a member of obj, the next a member of that member's value. It returns the zero Span if
// there is no such value. Of several members with one name it takes the last, as
// encoding/json does.
func Find(obj []byte, path ...string) Span { return Object{Text: obj}.Find(path...) }

// Find returns the position of the value. See the function Find.
func (o Object) Find(path ...string) Span {
	at := Span{0, len(o.Text)}
	for _, name := range path {
		found := Span{}
		for key, value := range o.Spans() {
			if EqualString(key.In(o.Text), name) {
				found = value
			}
		}
		if found.Len == 0 {
			return Span{}
		}
		at = Span{at.Off + found.Off, found.Len}
		o = Object{Text: found.In(o.Text)}
	}
	return at
}

// Get returns the value that Find finds, nil if absent.
func (o Object) Get(name string) []byte { return o.Find(name).In(o.Text) }

// GetStrict returns the values of two members. See the function GetStrict.
func (o Object) GetStrict(first, second string) (a, b []byte, err error) {
	f := strictFind{first: first, second: second, err: notObject(o.Text)}
	for name, value := range o.Spans() {
		f.look(name.In(o.Text), value)
	}
	at, bt, err := f.found()
	return at.In(o.Text), bt.In(o.Text), err
}

// An Edit replaces a part of a text.
type Edit struct {
	Span
	With []byte
}

// Replace returns a copy of text with edits made. It sorts the edits, which must not
// overlap.
func Replace(text []byte, edits ...Edit) []byte {
	size := len(text)
	for i, e := range edits {
		size += len(e.With) - e.Len
		for ; i > 0 && edits[i].Off < edits[i-1].Off; i-- { // slices.SortFunc would allocate them
			edits[i], edits[i-1] = edits[i-1], edits[i]
		}
	}
	out, from := make([]byte, 0, size), 0
	for _, e := range edits {
		out = append(append(out, text[from:e.Off]...), e.With...)
		from = e.Off + e.Len
	}
	return append(out, text[from:]...)
}

// Replace returns a copy with the edits made. An edit replaces the whole known value or lies
// outside it. See the function Replace.
func (o Object) Replace(edits ...Edit) Object {
	known := o.Known
	for _, e := range edits {
		switch {
		case e.Off < o.Known.Off:
			known.Off += len(e.With) - e.Len
		case e.Off == o.Known.Off:
			known.Len = len(e.With)
		}
	}
	return Object{Replace(o.Text, edits...), known}
}

// Set returns a copy of obj in which the member name has the given value. An absent
// member is added at the end; every other byte stays. name needs no escapes. A value that
// is not an object is returned unchanged.
func Set(obj []byte, name string, value []byte) []byte {
	return Object{Text: obj}.Set(name, value).Text
}

// Set returns a copy with the member. See the function Set.
func (o Object) Set(name string, value []byte) Object {
	if old := o.Find(name); old.Len > 0 {
		return o.Replace(Edit{old, value})
	}
	end := bytes.LastIndexByte(o.Text, '}')
	if end < 0 || !IsObject(o.Text) {
		return o
	}
	member := make([]byte, 0, len(name)+len(value)+4)
	if last := bytes.TrimRight(o.Text[:end], " \t\r\n"); last[len(last)-1] != '{' {
		member = append(member, ',')
	}
	member = append(append(append(member, '"'), name...), '"', ':')
	return Object{Replace(o.Text, Edit{Span{Off: end}, append(member, value...)}), o.Known}
}

// Delete returns a copy of obj without any member of these names and without the
// commas that are no longer needed; every other byte stays.
func Delete(obj []byte, names ...string) []byte { return Object{Text: obj}.Delete(names...).Text }

// Delete returns a copy without these members. See the function Delete.
func (o Object) Delete(names ...string) Object {
	obj, out, known := o.Text, make([]byte, 0, len(o.Text)), Span{}
	kept, from := false, 0 // whether a member stays; the text before from is done
	for key, value := range o.Spans() {
		start, end := key.Off, value.Off+value.Len
		if !slices.ContainsFunc(names, func(name string) bool { return EqualString(key.In(obj), name) }) {
			out = append(out, obj[from:end]...)
			kept, from = true, end
			if value == o.Known {
				known = Span{len(out) - value.Len, value.Len}
			}
			continue
		}
		if from == 0 {
			out = append(out, obj[:start]...) // the brace and the space behind it
		}
		from = end
		if after := space(obj, end); !kept && after < len(obj) && obj[after] == ',' {
			from = space(obj, after+1)
		}
	}
	if !kept && from > 0 {
		return Object{Text: []byte("{}")}
	}
	return Object{append(out, obj[from:]...), known}
}
