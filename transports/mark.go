package transports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// dynmcp marks what it says itself: its errors with "source": "dynmcp" in their data, and members
// of _meta in its results with names that begin with dynmcp/. A server may write the same, and must
// not be believed: a host would repeat a call that "did not run".

const metaPrefix = "dynmcp/"

// OutcomeOf returns what an error of dynmcp says about its call. ok is false for an error of a
// server.
func OutcomeOf(err *wire.Error) (outcome Outcome, ok bool) {
	text, isText := wire.Text(wire.Get(err.Data, "outcome"))
	return Outcome(text), isText && wire.EqualString(wire.Get(err.Data, "source"), "dynmcp")
}

// HintOf returns the hint of an error of dynmcp, "" for an error of a server.
func HintOf(err *wire.Error) string {
	if _, ok := OutcomeOf(err); !ok {
		return ""
	}
	hint, _ := wire.Text(wire.Get(err.Data, "hint"))
	return hint
}

// Unmark returns an error of a server without the mark of dynmcp: if its data have the mark, they
// become a member of others.
func Unmark(err *wire.Error) *wire.Error {
	marked := false
	for data := range resembling(err.JSON(), "data") {
		for source := range resembling(data, "source") {
			text, _ := wire.Text(source)
			text, _, _ = strings.Cut(text, "\x00")
			marked = marked || strings.EqualFold(strings.TrimSpace(text), "dynmcp")
		}
	}
	if !marked {
		return err
	}
	data := cmp.Or(string(err.Data), "null")
	own := &wire.Error{Code: err.Code, Message: err.Message, Data: fmt.Appendf(nil, `{"source":"server","data":%s}`, data)}
	if err.Raw != nil {
		own.Raw = own.JSON()
	}
	return own
}

// resembling yields the members of an object whose name some reader takes for name.
func resembling(obj []byte, name string) func(yield func(value []byte) bool) {
	return func(yield func(value []byte) bool) {
		for key, value := range wire.Members(obj) {
			text, _ := wire.Text(key)
			text, _, _ = strings.Cut(text, "\x00")
			if strings.EqualFold(text, name) && !yield(value) {
				return
			}
		}
	}
}

// UnmarkResult returns a result of a server without members of _meta that have the name of
// dynmcp's own. meta is its _meta.
func UnmarkResult(result, meta json.RawMessage) (unmarked json.RawMessage, changed bool) {
	var names []string
	for key := range wire.Members(meta) {
		if name, _ := wire.Text(key); strings.HasPrefix(name, metaPrefix) {
			names = append(names, name)
		}
	}
	if names == nil {
		return result, false
	}
	return DeleteMeta(result, names...), true
}
