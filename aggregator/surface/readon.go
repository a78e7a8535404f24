package surface

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// WithReadingOn returns the input schema of a tool with the arguments to read on in results, if the
// config cuts any. Its other arguments are then optional.
func WithReadingOn(input string, cfg *schema.Config) string {
	if !results.Limits(cfg) {
		return input
	}
	properties, end := strings.TrimSuffix(input, `}}`), `}}`
	if !strings.HasSuffix(input, `}}}`) { // it has more members than its properties
		properties, end = input[:strings.LastIndex(input, `}},`)+1], `},"additionalProperties":false}`
	}
	for _, p := range []struct{ name, definition string }{
		{"result", `{"type":"string","description":"Handle of a result that was cut. Reads on in it: by offset and limit, in characters, by jsonpath, or by grep."}`},
		{"jsonpath", `{"type":"string","description":"JSONPath over the result."}`},
		{"grep", `{"type":"string","description":"Regular expression. Returns where it matches in the result."}`},
		{"offset", `{"type":"integer","minimum":0}`},
		{"limit", `{"type":"integer","minimum":1}`},
	} {
		if !strings.Contains(properties, `"`+p.name+`":`) {
			properties += `,"` + p.name + `":` + p.definition
		}
	}
	return properties + end
}

// ReadingOn returns a function that reads on in a result if the arguments name one, and otherwise calls
// answer.
func ReadingOn(cfg *schema.Config, answer func(*Call)) func(*Call) {
	if !results.Limits(cfg) {
		return answer
	}
	return func(c *Call) {
		if wire.Get(c.Arguments, "result") != nil {
			c.readOn()
			return
		}
		answer(c)
	}
}

// defaultRead is how many characters of a result are read at once if its tool has no limit any
// more.
const defaultRead = 16 << 10

func (c *Call) readOn() {
	in := ReadArguments(c.Arguments, "result", "jsonpath", "grep", "offset", "limit")
	handle := in.Text("result")
	q := results.Query{Tool: c.Tool, Handle: handle, JSONPath: in.Text("jsonpath"), Grep: in.Text("grep"), Offset: in.Number("offset"), Limit: in.Number("limit")}
	switch query, grep, page := in.Has("jsonpath"), in.Has("grep"), in.Has("offset") || in.Has("limit"); {
	case in.Errs != nil:
	case query && grep || page && (query || grep):
		in.Fail(`"result" goes with one of "jsonpath", "grep", and "offset" with "limit"`)
	case q.Offset < 0 || q.Limit < 0:
		in.Fail(`"offset" and "limit" must not be negative`)
	}
	if err := in.Err(); err != nil {
		c.InvalidArguments(err)
		return
	}
	c.Kept(handle, func(whole json.RawMessage, limit int, ok bool) {
		if !ok {
			remedy := "Call the tool again"
			if strings.Contains(handle, "-") { // by another replica, whose answer may be missing only now
				remedy = "The replica that keeps it may not answer now: ask once more before you call the tool again"
			}
			c.InvalidArguments(fmt.Errorf("there is no result %s, or no longer: they are kept for an hour, at most %d. %s", Value(wire.Quote(handle)), results.MaxOfUser, remedy))
			return
		}
		q.Most = cmp.Or(limit, defaultRead)
		answer, err := q.Read(whole)
		if err != nil {
			c.InvalidArguments(err)
			return
		}
		c.Reply(answer, nil)
	})
}
