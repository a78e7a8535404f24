package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/membudget"
)

// A gatedPeer is a host that takes each notification when its gate has room.
type gatedPeer struct {
	gate chan struct{}

	mu  sync.Mutex
	got []string
}

func (p *gatedPeer) Notify(method string, params json.RawMessage) {
	<-p.gate
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, strings.TrimPrefix(method, "notifications/")+" "+string(params))
}

func (p *gatedPeer) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return nil
}

func (p *gatedPeer) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func none(Stream) bool { return false }

// What comes while the log messages of the handshake are sent comes after them, each message once,
// also if the host says again that it is initialized.
func TestNothingOvertakesTheHandshake(t *testing.T) {
	to, p := NewRegistry[int]().New(1), &gatedPeer{gate: make(chan struct{})}
	to.Join(p, Audience{})
	log := func(n int) { to.Notify("notifications/message", fmt.Append(nil, n), none) }
	log(1)
	log(2)
	to.Notify("notifications/tools/list_changed", nil, none) // not before the handshake is over
	done := make(chan struct{})
	go func() {
		defer close(done)
		to.Initialize()
	}()
	p.gate <- struct{}{} // Initialize sends
	log(3)
	to.Initialize()
	to.Notify("notifications/tools/list_changed", nil, none)
	close(p.gate)
	<-done
	log(4)
	want := []string{"message 1", "message 2", "message 3", "tools/list_changed ", "message 4"}
	if got := p.all(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The log messages that wait for the end of the handshake are bounded in number and in bytes.
func TestEarlyMessagesAreBounded(t *testing.T) {
	for size, most := range map[int]int{1: maxEarly, maxEarlyBytes / 4: 4, maxEarlyBytes: 1, maxEarlyBytes + 1: 0} {
		to, p := NewRegistry[int]().New(1), &gatedPeer{gate: make(chan struct{})}
		close(p.gate)
		budget := membudget.New(1<<20, nil)
		to.Early = budget.Open("host", nil)
		to.Join(p, Audience{})
		to.Notify("notifications/message", make([]byte, maxEarlyBytes+1), none) // leaves the room to others
		for range 2 * maxEarly {
			to.Notify("notifications/message", make([]byte, size), none)
		}
		charged := budget.Total()
		to.Initialize()
		if got := len(p.all()); got != most || charged != int64(most*size) || budget.Total() != 0 {
			t.Errorf("%d messages of %d bytes are kept, want %d; %d bytes were charged, %d stay so", got, size, most, charged, budget.Total())
		}
	}
}

// A change of a list is announced also while the log messages of the handshake are sent.
func TestAChangeIsAnnouncedDuringTheHandshake(t *testing.T) {
	to, p := NewRegistry[int]().New(1), &gatedPeer{gate: make(chan struct{})}
	to.Join(p, Audience{})
	to.Notify("notifications/message", json.RawMessage(`1`), none)
	to.Notify("notifications/message", json.RawMessage(`2`), none)
	done := make(chan struct{})
	go func() {
		defer close(done)
		to.Initialize()
	}()
	p.gate <- struct{}{} // Initialize sends
	to.mu.Lock()
	initialized := to.initialized
	to.mu.Unlock()
	if !initialized { // Announce asks that
		t.Error("the handshake is not over")
	}
	close(p.gate)
	<-done
}
