// Package notify finds the sessions to notify of messages that upstreams send unasked, and of
// changed lists. A [Registry] holds the [Recipient] of each session, which records what its host
// requested; a [Source] is an upstream that notifies; a [Snapshot] is the content of the lists
// at one moment. The package knows no surface and no call: it returns sessions to the
// aggregator in the aggregator's own type.
package notify

import (
	"context"
	"time"
)

// AnnounceDelay is how long changes are collected before hosts are notified: servers that start
// together, or a server that announces each of its tools, are one change.
const AnnounceDelay = 50 * time.Millisecond

// A Signal holds one token while a change may have to be announced to hosts.
type Signal chan struct{}

// NewSignal returns a signal without a token.
func NewSignal() Signal { return make(Signal, 1) }

// Set announces a possible change to hosts. The last change is never lost: a token stays in the
// channel until it is received.
func (s Signal) Set() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Wait returns true AnnounceDelay after Set, false when ctx ends.
func (s Signal) Wait(ctx context.Context) bool {
	select {
	case <-s:
	case <-ctx.Done():
		return false
	}
	select {
	case <-time.After(AnnounceDelay):
	case <-ctx.Done():
		return false
	}
	select {
	case <-s:
	default:
	}
	return true
}
