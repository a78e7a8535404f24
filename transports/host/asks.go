package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

var errHostGone = errors.New("the host is gone")

// Request asks the host. The function it returns waits for the answer.
func (h *Host) Request(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	answered := make(chan wire.Message, 1)
	id := h.ask(answered)
	if id == 0 {
		return failed(errors.New("the host has not begun"))
	}
	if err := h.write(hostMaxUnread, wire.Request(id, method, params)); err != nil {
		h.takeAsk(id)
		if errors.Is(err, wire.ErrFull) {
			return failed(errors.New("the host does not read"))
		}
		return failed(errHostGone)
	}
	return func() (json.RawMessage, error) {
		defer h.takeAsk(id)
		select {
		case m := <-answered:
			if m.Error != nil {
				return nil, wire.ParseError(m.Error)
			}
			return m.Result, nil
		case <-ctx.Done():
			h.withdraw(id, context.Cause(ctx))
			return nil, ctx.Err()
		case <-h.gone:
			return nil, errHostGone
		}
	}
}

// failed is the answer of what could not be asked.
func failed(err error) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) { return nil, err }
}

// withdraw tells the host that we no longer want an answer.
func (h *Host) withdraw(id int64, cause error) {
	params := fmt.Appendf(nil, `{"requestId":%d`, id)
	var withdrawn *transports.Cancelled
	if errors.As(cause, &withdrawn) && withdrawn.Reason != nil {
		params = append(append(params, `,"reason":`...), withdrawn.Reason...)
	}
	h.Notify("notifications/cancelled", append(params, '}'))
}

// ask gives a request to the host an id, 0 before the host has begun.
func (h *Host) ask(answered chan<- wire.Message) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun {
		return 0
	}
	h.lastID++
	h.asks[h.lastID] = answered
	return h.lastID
}

func (h *Host) takeAsk(id int64) chan<- wire.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	answered := h.asks[id]
	delete(h.asks, id)
	return answered
}

// response hands the host's answer to whoever asked.
func (h *Host) response(m wire.Message) {
	id, _ := transports.ParseID(m.ID)
	answered := h.takeAsk(id)
	if answered == nil {
		h.log.Debug("the host answered what nobody asked", "id", string(m.ID))
		return
	}
	answered <- m
}

// answerLost fails what we asked under this id: the host's answer is too long.
func (h *Host) answerLost(raw []byte) {
	e := &wire.Error{Code: transports.CodeTooLarge, Message: "the host's answer is too large"}
	h.response(wire.Message{ID: raw, Error: e.JSON()})
}
