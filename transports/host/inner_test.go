package host

import (
	"encoding/json"
	"testing"
)

// An inner request ends with its outer one: without an answer if the host cancels, with an answer
// if the session ends.
func TestInnerEndsWithItsRequest(t *testing.T) {
	for _, test := range []struct {
		name     string
		end      func(r *Request)
		answered int
	}{
		{"cancelled", func(r *Request) { r.Cancel(json.RawMessage(`"why"`)) }, 0},
		{"drained", func(r *Request) { r.drain() }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			answers, told := 0, 0
			r := &Request{Respond: func(*Request, json.RawMessage, error) {}}
			answer := func(json.RawMessage, error) { answers++ }
			first, second := r.Inner("a", nil, answer), r.Inner("b", nil, answer)
			for _, inner := range []*Request{first, second} {
				if !inner.OnCancel(func(json.RawMessage) {
					told++
					inner.Reply(nil, nil)
				}) {
					t.Fatal("the inner request is not live")
				}
			}
			test.end(r)
			if answers != test.answered || told != 2 {
				t.Errorf("got %d answers, %d cancellations", answers, told)
			}
			if late := r.Inner("c", nil, answer); late.OnCancel(func(json.RawMessage) {}) {
				t.Error("an inner request of an ended one is live")
			}
		})
	}
}
