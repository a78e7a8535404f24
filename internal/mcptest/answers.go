package mcptest

import (
	"fmt"
	"io"
	"net/http"
)

// Answers is an MCP server over HTTP without sessions. answer returns the result of a request; notifications
// are accepted.
func Answers(answer func(Message) (result string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a request that is cut has no id
		m := Parse(string(body))
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer(m))
	})
}
