package scripts

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/internal/script"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Members of _meta. In the result: the calls that were made. In a block of content: that the script
// printed it.
const (
	MetaCalls   = "dynmcp/calls"
	MetaPrinted = "dynmcp/printed"
)

// render returns the result of run_script: the printed text, the returned value, and notes. An error
// says where it occurred, and which calls ran.
func render(r *script.Result, err error, notes []string) json.RawMessage {
	var blocks []json.RawMessage
	if r.Printed != "" || r.Dropped > 0 {
		printed := strings.TrimSuffix(r.Printed, "\n")
		if r.Dropped > 0 {
			printed += fmt.Sprintf("\n[%d more bytes were printed]", r.Dropped)
		}
		blocks = append(blocks, fmt.Appendf(nil, `{"type":"text","text":%s,"_meta":{"%s":true}}`, wire.Quote(printed), MetaPrinted))
	}
	blocks = append(blocks, r.Content...)
	switch {
	case err != nil:
		blocks = append(blocks, results.TextItem(fmt.Sprintf("The script failed. %v\n%s", err, r.Ran())))
	case len(blocks) == 0:
		blocks = append(blocks, results.TextItem("The script returned nothing."))
	}
	if cut := r.Cut(); err == nil && cut != "" {
		blocks = append(blocks, results.TextItem(cut))
	}
	for _, note := range notes {
		blocks = append(blocks, results.TextItem(note))
	}
	result := results.Of(blocks)
	if err != nil {
		result = wire.Set(result, "isError", []byte("true"))
	}
	if calls := callsOf(r); calls != nil {
		result = wire.Set(result, "_meta", fmt.Appendf(nil, `{"%s":%s}`, MetaCalls, calls))
	}
	return result
}

// callsOf returns the calls of a script for programs; nil if there are none.
func callsOf(r *script.Result) json.RawMessage {
	type record struct {
		Name    string `json:"name"`
		Outcome string `json:"outcome"`
		Error   string `json:"error,omitempty"`
		Took    int64  `json:"took_ms"`
	}
	var all []record
	for _, c := range r.Calls {
		all = append(all, record{c.Name, c.Outcome, c.Error, c.Took.Milliseconds()})
	}
	if all == nil {
		return nil
	}
	out, _ := json.Marshal(all) // texts and numbers always marshal
	return out
}

func progress(token json.RawMessage, calls int, name string) json.RawMessage {
	noun := "calls"
	if calls == 1 {
		noun = "call"
	}
	return fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"message":%s}`, token, calls, wire.Quote(fmt.Sprintf("%d %s made, the last %s", calls, noun, name)))
}
