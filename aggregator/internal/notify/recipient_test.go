package notify

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
)

// An orderPeer is a host that is notified of something else while it gets its first message.
type orderPeer struct {
	got   []string
	first func()
}

func (p *orderPeer) Notify(_ string, params json.RawMessage) {
	if first := p.first; first != nil {
		p.first = nil
		first()
	}
	p.got = append(p.got, string(params))
}

func (p *orderPeer) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return nil
}

// A notification does not overtake the messages of the handshake.
func TestNotificationsFollowTheHandshake(t *testing.T) {
	to := NewRegistry[int]().New(1)
	send := func(method, text string) {
		to.Notify(method, json.RawMessage(text), func(Stream) bool { return false })
	}
	const log = "notifications/message"
	p := &orderPeer{first: func() {
		send(log, "later")
		send("notifications/tools/list_changed", "change")
	}}
	to.Join(p, Audience{})
	send("notifications/tools/list_changed", "before")
	send(log, "early 1")
	send(log, "early 2")
	to.Initialize()
	send(log, "last")
	if want := []string{"early 1", "early 2", "later", "change", "last"}; !slices.Equal(p.got, want) {
		t.Errorf("got %q, want %q", p.got, want)
	}
}
