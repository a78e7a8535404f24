package wire

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A known value does not change what Set and Delete return, and Known follows the value.
func TestObjectsWithAKnownValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(jsonObject(2).Draw(t, "obj"))
		known := Span{}
		for _, value := range Spans(text) {
			if known.Len == 0 || rapid.Bool().Draw(t, "this one") {
				known = value
			}
		}
		value, o := string(known.In(text)), Object{text, known}
		name := rapid.SampledFrom([]string{"a", "b", "_meta", "new"}).Draw(t, "name")
		with := []byte(jsonValue(1).Draw(t, "value"))
		set, deleted := o.Set(name, with), o.Delete(name, "b")
		if want := Set(text, name, with); string(set.Text) != string(want) {
			t.Errorf("%s: Set(%s, %s): got %s, want %s", text, name, with, set.Text, want)
		}
		if want := Delete(text, name, "b"); string(deleted.Text) != string(want) {
			t.Errorf("%s: Delete(%s, b): got %s, want %s", text, name, deleted.Text, want)
		}
		if o.Find(name) != Find(text, name) {
			t.Errorf("%s: Find(%s): got %v", text, name, o.Find(name))
		}
		for _, changed := range []Object{set, deleted} {
			at := changed.Known.In(changed.Text)
			if known.Len > 0 && changed.Known.Len > 0 && string(at) != value && string(at) != string(with) {
				t.Errorf("%s: %s was known, and in %s it is %s", text, value, changed.Text, at)
			}
			if changed.Known.Len > 0 && !slices.Contains(valuesOf(changed.Text), changed.Known) {
				t.Errorf("%s: there is no value at %v", changed.Text, changed.Known)
			}
		}
	})
}

func valuesOf(obj []byte) (all []Span) {
	for _, value := range Spans(obj) {
		all = append(all, value)
	}
	return all
}
