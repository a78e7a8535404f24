package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

const (
	// ackTimeout is how long an upstream may take to acknowledge a notification stream,
	// which it must do at once. After that the stream counts as open.
	ackTimeout = 5 * time.Second
	// ackGrace is how long the handshake waits for the first acknowledgement. Lists that are
	// requested after the acknowledgement miss no change.
	ackGrace = 100 * time.Millisecond
)

// Subscribe subscribes to notifications/resources/updated of a resource, "uri" in params, or in
// the stateless era to notifications/tasks of a task, "taskId". In that era it returns when
// the upstream has acknowledged a stream that names it, or has not done so for ackTimeout; a
// subscription that the upstream does not grant is an error. If ctx ends first, it may stay
// subscribed.
func (c *Conn) Subscribe(ctx context.Context, params json.RawMessage) error {
	if c.Era() == transports.Stateless {
		return c.subscriptions.change(ctx, params, true)
	}
	_, err := c.Call(ctx, "resources/subscribe", params)
	return err
}

// Unsubscribe ends a subscription.
func (c *Conn) Unsubscribe(ctx context.Context, params json.RawMessage) error {
	if c.Era() == transports.Stateless {
		return c.subscriptions.change(ctx, params, false)
	}
	_, err := c.Call(ctx, "resources/unsubscribe", params)
	return err
}

// subscriptions keeps the notification stream of an upstream of the stateless era open: one
// subscriptions/listen in flight that names all subscriptions (MCP 2026-07-28,
// "Subscriptions"). One goroutine, run, opens and replaces it. Concurrent changes share the
// next stream. The old one is cancelled when the new one is open, so that nothing is missed in
// between.
type subscriptions struct {
	conn   *Conn
	wake   chan struct{}                      // holds a token while changes may wait
	newest atomic.Pointer[notificationStream] // the stream that waits for its acknowledgement
	listed atomic.Bool                        // lists may have been requested before the first acknowledgement

	// Used by run only.
	topics  map[topic]bool      // subscribed to
	current *notificationStream // nil while none is open
	broken  bool                // the last one ended, or the first could not be opened
	pause   time.Duration       // before the next attempt to reopen it
	reopen  <-chan time.Time    // fires when that attempt is due; nil if there is none

	mu      sync.Mutex
	waiting []*subscriptionChange
}

// A topic is the subject of a subscription: a resource by its URI, or a task by its id.
type topic struct {
	filter string // the member of "notifications" that names it
	name   string
}

// The members that name topics.
const (
	resourceTopics = "resourceSubscriptions"
	taskTopics     = "taskIds" // of the extension io.modelcontextprotocol/tasks
)

// topicOf reads the topic that the params of a subscription name.
func topicOf(params json.RawMessage) (topic, *wire.Error) {
	if uri, ok := wire.Text(wire.Get(params, "uri")); ok {
		return topic{resourceTopics, uri}, nil
	}
	if id, ok := wire.Text(wire.Get(params, "taskId")); ok {
		return topic{taskTopics, id}, nil
	}
	return topic{}, &wire.Error{Code: wire.CodeInvalidParams, Message: `"uri" must be a string`}
}

// A subscriptionChange is a Subscribe or Unsubscribe that waits for its result.
type subscriptionChange struct {
	topic topic
	add   bool
	done  chan error
}

// A notificationStream is one subscriptions/listen.
type notificationStream struct {
	call  Call
	began time.Time
	first bool
	gap   bool            // no stream was open before it
	late  <-chan struct{} // acked, if it was not closed within ackTimeout
	ended chan error      // receives the error that ended the stream; nil if a result did

	acknowledge sync.Once
	acked       chan struct{}
	grants      json.RawMessage // "notifications" of the acknowledgement; nil if unknown
}

// change makes run begin or end a subscription, and returns the result.
func (s *subscriptions) change(ctx context.Context, params json.RawMessage, add bool) error {
	about, problem := topicOf(params)
	if problem != nil {
		return problem
	}
	change := &subscriptionChange{about, add, make(chan error, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, change)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case err := <-change.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.conn.done:
		return s.conn.Loss()
	}
}

// start opens the first stream and waits for its acknowledgement, for ackGrace.
func (s *subscriptions) start(ctx context.Context) {
	opened := make(chan struct{})
	s.conn.spawn(func() { s.run(opened) })
	select {
	case <-opened:
	case <-time.After(ackGrace):
		s.listed.Store(true)
	case <-ctx.Done():
	case <-s.conn.done:
	}
}

// run owns the stream until the connection ends. It closes opened when the first attempt to
// open one is over.
func (s *subscriptions) run(opened chan<- struct{}) {
	if err := s.open(s.topics); err != nil {
		s.down(err)
	}
	close(opened)
	for {
		var late <-chan struct{}
		var ended <-chan error
		if s.current != nil {
			late, ended = s.current.late, s.current.ended
		}
		select {
		case <-s.wake:
			s.apply(s.takeWaiting())
		case <-late:
			s.current.late = nil
			s.notifyMissed()
		case err := <-ended:
			s.down(err)
		case <-s.reopen:
			if err := s.open(s.topics); err != nil {
				s.down(err)
			}
		case <-s.conn.ctx.Done():
			return
		}
	}
}

// takeWaiting returns and removes the waiting changes.
func (s *subscriptions) takeWaiting() []*subscriptionChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.waiting
	s.waiting = nil
	return changes
}

// down records that no stream is open and schedules the next attempt. The pause doubles,
// unless a stream was open for longer than reopenMost. If the upstream has no such stream, or
// grants nothing on it, the next attempt comes with the next change.
func (s *subscriptions) down(err error) {
	_, useless := errors.AsType[*wire.Error](err)
	if st := s.current; st != nil {
		useless = useless || st.grantsNothing()
		if time.Since(st.began) > reopenMost {
			s.pause = reopenFirst
		}
	}
	s.current, s.broken, s.reopen = nil, true, nil
	s.conn.log.Debug("no notification stream", "err", err, "final", useless)
	if !useless {
		s.reopen = time.After(s.pause)
		s.pause = min(2*s.pause, reopenMost)
	}
}

// apply makes changes. It opens at most one new stream for all of them.
func (s *subscriptions) apply(changes []*subscriptionChange) {
	topics, adds := maps.Clone(s.topics), false
	for _, change := range changes {
		if change.add {
			topics[change.topic], adds = true, true
		} else {
			delete(topics, change.topic)
		}
	}
	var err error
	switch {
	case s.current == nil && !adds:
		s.topics = topics // for the next stream
	case s.current == nil || !maps.Equal(topics, s.topics):
		err = s.open(topics)
	}
	if _, refused := errors.AsType[*wire.Error](err); refused && len(changes) > 1 {
		for _, change := range changes { // the upstream may refuse all for one of them
			s.apply([]*subscriptionChange{change})
		}
		return
	}
	for _, change := range changes {
		switch {
		case err != nil:
			change.done <- err
		case change.add && topics[change.topic] && !s.current.granted(change.topic):
			s.topics = maps.Clone(s.topics)
			delete(s.topics, change.topic)
			change.done <- &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("%s grants no subscription to %s", s.conn.server.Name, change.topic.name)}
		default:
			change.done <- nil
		}
	}
}

// open opens a stream that names topics and cancels the previous one. It returns when the
// upstream has acknowledged the stream or sent another message on it, or after ackTimeout. With
// an error the previous stream stays open.
func (s *subscriptions) open(topics map[topic]bool) error {
	st := &notificationStream{began: time.Now(), first: s.current == nil && !s.broken, acked: make(chan struct{}), ended: make(chan error, 1)}
	st.call = Call{Method: "subscriptions/listen", Params: listenParams(topics), unlimited: true, Done: func(_ json.RawMessage, err error) { st.ended <- err }}
	s.newest.Store(st)
	s.conn.Start(&st.call)
	ended := false
	select {
	case <-st.acked:
	case err := <-st.ended:
		if ended = true; err != nil && !st.isAcked() {
			s.newest.Store(s.current)
			return err
		}
		st.ended <- err // for run
	case <-time.After(ackTimeout):
		st.late = st.acked
		s.conn.log.Warn("the notification stream is not acknowledged", "after", ackTimeout)
	}
	if s.current != nil && !s.conn.Cancel(&s.current.call, nil) {
		s.broken = true // it ended while this one was being opened
	}
	st.gap = s.broken
	s.current, s.topics, s.broken, s.reopen = st, topics, false, nil
	if st.isAcked() || st.gap && !ended {
		s.notifyMissed()
	}
	return nil
}

// notifyMissed tells the peer of changes that may have been missed before the stream was open.
// After a gap these are changes of all lists. If the first stream opened only after lists may
// have been fetched, they are changes of the lists that the upstream announces.
func (s *subscriptions) notifyMissed() {
	switch {
	case s.current.gap:
		s.notifyListsChanged(s.conn.info.Has)
	case s.current.first && s.listed.Load():
		s.notifyListsChanged(s.conn.info.announces)
	}
}

// notifyListsChanged tells the peer that lists of some kinds may have changed.
func (s *subscriptions) notifyListsChanged(concerns func(kind string) bool) {
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if s.conn.opts.Peer != nil && concerns(kind) {
			s.conn.opts.Peer.Notify("notifications/"+kind+"/list_changed", nil)
		}
	}
}

// acknowledge marks the newest stream as open if the notification m came on it. own is the call
// on whose stream m came, nil if the stream is shared.
func (s *subscriptions) acknowledge(m wire.Message, own *Call) {
	st := s.newest.Load()
	if st == nil || st.isAcked() {
		return
	}
	isAck := m.Method == "notifications/subscriptions/acknowledged"
	id, named := transports.ParseID(wire.Get(wire.Get(m.Params, "_meta"), transports.MetaSubscriptionID))
	switch {
	case own == &st.call:
	case own != nil:
		return
	case named && s.conn.calls.with(id, &st.call, nil):
	case named || !isAck:
		return
	}
	st.acknowledge.Do(func() {
		if isAck {
			st.grants = wire.Get(m.Params, "notifications")
		}
		close(st.acked)
	})
}

func (st *notificationStream) isAcked() bool {
	select {
	case <-st.acked:
		return true
	default:
		return false
	}
}

// granted reports whether the upstream grants a subscription. It is true if that is not known.
func (st *notificationStream) granted(about topic) bool {
	if !st.isAcked() || st.grants == nil {
		return true
	}
	for granted := range wire.Elements(wire.Get(st.grants, about.filter)) {
		if text, _ := wire.Text(granted); text == about.name {
			return true
		}
	}
	return false
}

// grantsNothing reports whether the acknowledgement has neither true nor a URI.
func (st *notificationStream) grantsNothing() bool {
	if !st.isAcked() || st.grants == nil {
		return false
	}
	for _, value := range wire.Members(st.grants) {
		if text := string(value); text != "false" && text != "[]" && text != "null" {
			return false
		}
	}
	return true
}

func listenParams(topics map[topic]bool) json.RawMessage {
	names := map[string][]string{}
	for about := range topics {
		names[about.filter] = append(names[about.filter], about.name)
	}
	wanted := json.RawMessage(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`)
	for _, filter := range []string{resourceTopics, taskTopics} {
		if list := names[filter]; list != nil {
			text, _ := json.Marshal(slices.Sorted(slices.Values(list))) // texts always marshal
			wanted = wire.Set(wanted, filter, text)
		}
	}
	params := wire.Set([]byte(`{}`), "notifications", wanted)
	if names[taskTopics] == nil {
		return params
	}
	return transports.SetMeta(params, transports.MetaCapabilities, []byte(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`))
}
