package surface

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Failed returns the answer to a call whose inner request has failed: an upstream's own error
// unchanged, any other as text for the model.
func Failed(err error) (json.RawMessage, error) {
	var rpc *wire.Error
	var failure *transports.Failure
	if !errors.As(err, &failure) && errors.As(err, &rpc) && rpc.Raw != nil {
		return nil, rpc
	}
	return results.Error(Words(err)), nil
}

// Words describes the error of an inner request for a model.
func Words(err error) string {
	var rpc *wire.Error
	var failure *transports.Failure
	switch {
	case errors.As(err, &failure):
		return failure.Text()
	case !errors.As(err, &rpc):
		return err.Error()
	}
	text := rpc.Message
	switch outcome, ok := wire.Text(wire.Get(rpc.Data, "outcome")); {
	case rpc.Raw != nil:
		text = fmt.Sprintf("the server answered with the error %d: %s", rpc.Code, rpc.Message)
	case outcome == string(transports.NotSent), rpc.Data == nil && rpc.Code == wire.CodeMethodNotFound:
		text += " (outcome not_sent: nothing was called)"
	case ok:
		text += fmt.Sprintf(" (outcome %s)", outcome)
	}
	if hint, ok := wire.Text(wire.Get(rpc.Data, "hint")); ok && rpc.Raw == nil {
		text += "\nhint: " + hint
	}
	return text
}
