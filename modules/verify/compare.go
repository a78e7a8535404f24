package verify

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A difference is one place where two JSON texts differ.
type difference struct {
	Path   string `json:"path"` // a JSON pointer
	What   string `json:"what"`
	Direct string `json:"direct"` // the outline of the server's value
	Behind string `json:"behind"` // the outline of the value behind dynmcp
	value  []byte // the missing value, or else the value behind dynmcp
}

const (
	added   = "added"
	missing = "missing"
	changed = "value"
	ended   = "the server ended" // only without dynmcp
)

// differences compares two JSON texts byte for byte. The order of members, the notation of
// numbers, escapes and white space all matter.
func differences(a, b []byte) (all []difference) {
	if string(a) == gone && string(b) != gone {
		return []difference{{Path: "/failed", What: ended, Direct: outline(a), Behind: outline(b)}}
	}
	compare("", a, b, &all)
	return all
}

func compare(path string, a, b []byte, all *[]difference) {
	if bytes.Equal(a, b) {
		return
	}
	note := func(what string) {
		*all = append(*all, difference{Path: path, What: what, Direct: outline(a), Behind: outline(b), value: b})
	}
	before := len(*all)
	switch {
	case wire.IsObject(a) && wire.IsObject(b), isArray(a) && isArray(b):
		compareMembers(path, a, b, note, all)
	default:
		note(changed)
		return
	}
	if len(*all) == before {
		note("space between tokens")
	}
}

func compareMembers(path string, a, b []byte, note func(string), all *[]difference) {
	names, one := members(a)
	others, two := members(b)
	below := func(name string) string {
		text, _ := wire.Text([]byte(name))
		return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(text)
	}
	reordered := !slices.Equal(names, others)
	for _, name := range names {
		if other, ok := two[name]; ok {
			compare(below(name), one[name], other, all)
		} else {
			*all = append(*all, difference{Path: below(name), What: missing, Direct: outline(one[name]), value: one[name]})
		}
	}
	for _, name := range others {
		if _, ok := one[name]; !ok {
			*all = append(*all, difference{Path: below(name), What: added, Behind: outline(two[name]), value: two[name]})
			reordered = false
		}
	}
	switch {
	case len(one) != len(two):
	case len(names) != len(others):
		note("a member that is there twice")
	case reordered:
		note("order of members")
	}
}

// members returns the quoted names of an object in order, and the values by name. The names of
// the elements of an array are their indexes.
func members(value []byte) (names []string, values map[string][]byte) {
	values = map[string][]byte{}
	add := func(name string, value []byte) {
		names = append(names, name)
		values[name] = value
	}
	for name, member := range wire.Members(value) {
		add(string(name), member)
	}
	if isArray(value) {
		for element := range wire.Elements(value) {
			add(strconv.Quote(strconv.Itoa(len(names))), element)
		}
	}
	return names, values
}

func isArray(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// outline describes a value so that different values can be told apart, without the contents of
// strings, which may be secret.
func outline(value []byte) string {
	const most = 40
	if len(value) == 0 {
		return ""
	}
	switch kind := wire.TypeName(value); {
	case value[0] == '"' || wire.IsObject(value) || isArray(value):
		return fmt.Sprintf("%s, %d bytes, %08x", kind, len(value), crc32.ChecksumIEEE(value))
	case len(value) > most:
		return string(value[:most]) + "…"
	}
	return string(value)
}

// without returns the differences that are not at or below one of varying.
func without(all, varying []difference) []difference {
	return slices.DeleteFunc(all, func(d difference) bool {
		return slices.ContainsFunc(varying, func(v difference) bool { return strings.HasPrefix(d.Path+"/", v.Path+"/") })
	})
}
