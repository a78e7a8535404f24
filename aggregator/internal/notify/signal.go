// Package notify finds the sessions that are to be notified: of what upstreams send
// unasked, and of lists that have changed. A [Registry] holds the [Recipient] of each
// session, which keeps what its host asked for; a [Source] is an upstream that notifies;
// a [Snapshot] is what hosts can read at one moment. The package knows no surface and no
// call: it returns sessions to the aggregator, as which it was given them.
package notify

import (
	"context"
	"time"
)

// AnnounceDelay is how long changes are collected before hosts are notified: servers that
// start together, or a server that announces each of its tools, are one change.
const AnnounceDelay = 50 * time.Millisecond

// A Signal holds one token while hosts may have to be notified of a change.
type Signal chan struct{}

// NewSignal returns a signal without a token.
func NewSignal() Signal { return make(Signal, 1) }

// Set has hosts notified if they would read something else now. The last change always
// gets out: a token stays in the channel until it is seen.
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
