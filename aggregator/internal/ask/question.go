package ask

import (
	"context"
	"encoding/json"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A Question is a request of an upstream of the handshake era.
type Question struct {
	Method string
	Params json.RawMessage

	answered chan answer // has room for one
	gate     *Gate       // opened by the answer; nil if only its call waits for it
}

type answer struct {
	result json.RawMessage
	err    error
}

// NewQuestion returns an unanswered question.
func NewQuestion(method string, params json.RawMessage) *Question {
	return &Question{Method: method, Params: transports.DeleteMeta(params, "progressToken"), answered: make(chan answer, 1)}
}

// Answer answers the question, unless it was answered.
func (q *Question) Answer(result json.RawMessage, err error) {
	if q.gate != nil {
		q.gate.mu.Lock()
		q.gate.answered = true
		q.gate.mu.Unlock()
	}
	select {
	case q.answered <- answer{result, err}:
	default:
	}
}

// Wait returns the answer.
func (q *Question) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case a := <-q.answered:
		return a.result, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Taken returns the answer if there is one.
func (q *Question) Taken() (result json.RawMessage, ok bool) {
	select {
	case a := <-q.answered:
		return a.result, true
	default:
		return nil, false
	}
}

// Refuse answers questions that nobody else will. One for the roots stays open: it is sent to the
// host of the next call.
func Refuse(questions []*Question) {
	for _, q := range questions {
		if q.gate == nil {
			q.Answer(nil, &wire.Error{Code: transports.CodeNoHost, Message: "the host did not answer"})
		}
	}
}
