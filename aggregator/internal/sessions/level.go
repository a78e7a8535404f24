package sessions

import "sync"

// A LevelUpdate makes a request wait until upstreams were told the log level that it wants.
type LevelUpdate struct {
	mu   sync.Mutex
	sent <-chan struct{} // closed when upstreams were told; nil if there is nothing to wait for
}

// Begin calls start, one call at a time. start returns a channel that Finish closes, nil if
// nothing has to be sent. Begin returns the channel to wait for, that of an earlier update if
// start returned nil.
func (l *LevelUpdate) Begin(start func() chan struct{}) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent := start(); sent != nil {
		l.sent = sent
	}
	return l.sent
}

// Finish reports that upstreams were told.
func (l *LevelUpdate) Finish(sent chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if close(sent); l.sent == sent {
		l.sent = nil
	}
}
