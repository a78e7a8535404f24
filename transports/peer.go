package transports

import (
	"context"
	"encoding/json"
	"math"
	"strconv"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Peer receives the messages that the other side of a connection sends unasked. The peer of
// an upstream forwards to hosts; the peer of a session is its host.
type Peer interface {
	// Notify handles a notification. It is called in the order of the wire and must not
	// block.
	Notify(method string, params json.RawMessage)
	// Request handles a request. Like Notify it is called in the order of the wire and must
	// not block: a request that was sent before a result also arrives before it. The returned
	// function waits for the answer. A *wire.Error is sent to the sender unchanged. ctx ends
	// when the sender is gone. If the sender cancels the request, the cause is a *Cancelled.
	Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error))
}

// Cancelled is the cause of a context whose request the sender cancelled
// (notifications/cancelled).
type Cancelled struct {
	Reason json.RawMessage // as the sender sent it, or nil
}

func (c *Cancelled) Error() string { return "the request was cancelled by its sender" }

// ParseID reads the id of a response to one of our requests. Our ids are integers. Some peers
// return them as strings, or as 1.0 because they store numbers as doubles.
func ParseID(raw []byte) (int64, bool) {
	text, quoted := wire.Text(raw)
	if !quoted {
		text = string(raw)
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err == nil || quoted {
		return id, err == nil
	}
	number, err := strconv.ParseFloat(text, 64)
	id = int64(number)
	return id, err == nil && math.Abs(number) < 1<<53 && float64(id) == number
}
