package notify

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/transports"
)

// A Recipient holds the notification state of one session: its log level, its subscriptions, and
// the lists that its host has read.
type Recipient[S any] struct {
	ID       string
	Audience // set by Join

	// Early counts the log messages before the end of the handshake in the memory budget; it may be nil.
	Early *membudget.Reservation

	session  S
	number   int // in order of arrival
	registry *Registry[S]
	peer     transports.Peer // the host

	elicitations []elicitation // guarded by the registry, oldest first

	mu          sync.Mutex
	initialized bool           // the handshake is over, the host may be notified
	early       []notification // log messages before that, and what comes while Initialize sends them
	earlyBytes  int            // of those before
	ended       bool           // no more requests for notifications are accepted
	level       Level
	subscribed  map[string]bool       // resource URIs
	kept        int                   // bytes of these
	streams     map[string]Stream     // by the id of the request
	allowances  map[string]*allowance // by server
	read        map[string]version    // by list: the last version that the host read, was notified of, or would have read
}

// An Audience is what decides which notifications a session gets.
type Audience struct {
	Server  string // the server that the session uses, "" for all
	User    string
	Replica bool // the host is another replica
	Shared  bool // the host is one of many hosts of a run
}

// Join registers a session, whose host is peer.
func (to *Recipient[S]) Join(peer transports.Peer, audience Audience) {
	to.peer, to.Audience = peer, audience
	r := to.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[to.ID], r.all = to, nil
	g := r.groupLocked(to.Server)
	g.sessions[to] = true
	g.users[to.User]++
	if to.Replica {
		g.replicas[to] = true
	}
	if r.users[to.User] == nil {
		r.users[to.User] = set[S]{}
	}
	r.users[to.User][to] = true
	if !to.Shared {
		r.exclusive = append(slices.Clone(r.exclusive), to)
	}
}

// Peer returns the host.
func (to *Recipient[S]) Peer() transports.Peer { return to.peer }

// Leave excludes the session from notifications of upstreams. Its levels and subscriptions stay
// until End.
func (to *Recipient[S]) Leave() {
	r := to.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[to.ID] == nil {
		return
	}
	delete(r.byID, to.ID)
	for _, e := range to.elicitations {
		r.forgetLocked(to, e)
	}
	r.all = nil
	g := r.groupLocked(to.Server)
	delete(g.sessions, to)
	delete(g.replicas, to)
	if g.users[to.User]--; g.users[to.User] == 0 {
		delete(g.users, to.User)
	}
	if delete(r.users[to.User], to); len(r.users[to.User]) == 0 {
		delete(r.users, to.User)
	}
	if !to.Shared {
		r.exclusive = slices.DeleteFunc(slices.Clone(r.exclusive), func(other *Recipient[S]) bool { return other == to })
	}
	r.tidyLocked(to.Server)
}

// End drops the levels and subscriptions of the session, and returns the subscribed resources.
func (to *Recipient[S]) End() (subscribed map[string]bool) {
	to.SetLevel(Level{})
	to.mu.Lock()
	defer to.mu.Unlock()
	subscribed = to.subscribed
	for uri := range subscribed {
		to.registry.unsubscribe(to, uri)
	}
	to.subscribed, to.ended = map[string]bool{}, true
	to.Early.Resize(0)
	return subscribed
}

// Ended reports whether End was called.
func (to *Recipient[S]) Ended() bool {
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.ended
}

// maxEarly and maxEarlyBytes limit the log messages that are kept until the handshake is over. A
// server that is started for its host logs its start.
const (
	maxEarly      = 100
	maxEarlyBytes = 64 << 10
)

// A notification waits for those before it.
type notification struct {
	method string
	params json.RawMessage
}

// Initialize reports that the handshake is over, and sends the log messages before that. Notifications
// that come meanwhile wait behind them.
func (to *Recipient[S]) Initialize() {
	to.mu.Lock()
	again := to.initialized
	to.initialized = true
	for ; len(to.early) > 0 && !again; to.early = to.early[1:] {
		next := to.early[0]
		to.mu.Unlock()
		to.peer.Notify(next.method, next.params)
		to.mu.Lock()
	}
	to.Early.Resize(0)
	to.mu.Unlock()
}

// Level returns the log level of the session.
func (to *Recipient[S]) Level() Level {
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.level
}

// SetLevel sets the log level, unless the session has ended.
func (to *Recipient[S]) SetLevel(level Level) {
	to.mu.Lock()
	defer to.mu.Unlock()
	if !to.ended {
		to.registry.setLevel(to, to.level, level)
		to.level = level
	}
}

// subscriptionCost is about what a subscription needs besides its URI, in bytes.
const subscriptionCost = 500

// Kept returns how many bytes are kept of subscriptions and of the request for log messages.
func (to *Recipient[S]) Kept() int {
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.kept + len(to.level.Params)
}

// WantsLog reports whether the host gets a log message: not if only another session requested
// messages of that level. verbose is the level that the upstream was told.
func (to *Recipient[S]) WantsLog(params json.RawMessage, verbose Level) bool {
	level := to.Level()
	return !level.IsSet() || level.Severity <= verbose.Severity || Logs(level.Severity, params)
}

// SetSubscribed sets whether the host, unless its session has ended, is subscribed to a resource,
// and reports whether that is a change.
func (to *Recipient[S]) SetSubscribed(uri string, subscribed bool) (changed bool) {
	to.mu.Lock()
	defer to.mu.Unlock()
	switch {
	case to.ended || to.subscribed[uri] == subscribed:
		return false
	case subscribed:
		to.kept += len(uri) + subscriptionCost
		to.subscribed[uri] = true
		to.registry.subscribe(to, uri)
	default:
		to.kept -= len(uri) + subscriptionCost
		delete(to.subscribed, uri)
		to.registry.unsubscribe(to, uri)
	}
	return true
}

// AddStream adds a stream of notifications.
func (to *Recipient[S]) AddStream(stream Stream) {
	to.mu.Lock()
	defer to.mu.Unlock()
	to.streams[string(stream.ID)] = stream
	for _, topic := range stream.topics() {
		to.registry.subscribe(to, topic)
	}
}

// RemoveStream removes a stream.
func (to *Recipient[S]) RemoveStream(stream Stream) {
	to.mu.Lock()
	defer to.mu.Unlock()
	delete(to.streams, string(stream.ID))
	for _, topic := range stream.topics() {
		to.registry.unsubscribe(to, topic)
	}
}

// topics returns all subscriptions of the session.
func (to *Recipient[S]) topics() map[string]bool {
	to.mu.Lock()
	defer to.mu.Unlock()
	all := maps.Clone(to.subscribed)
	for _, stream := range to.streams {
		for _, topic := range stream.topics() {
			all[topic] = true
		}
	}
	return all
}

// Notify sends a notification to the host: unchanged after a handshake, otherwise on every stream
// that wants it.
func (to *Recipient[S]) Notify(method string, params json.RawMessage, wants func(Stream) bool) {
	to.mu.Lock()
	initialized, waits := to.initialized, len(to.early) > 0
	if !initialized {
		size := to.earlyBytes + len(params)
		waits = method == "notifications/message" && !to.ended && len(to.early) < maxEarly && size <= maxEarlyBytes && to.Early.Resize(int64(size))
	}
	if waits {
		to.earlyBytes += len(params)
		to.early = append(to.early, notification{method, bytes.Clone(params)})
	}
	var ids []json.RawMessage
	for _, stream := range to.streams {
		if wants(stream) {
			ids = append(ids, stream.ID)
		}
	}
	to.mu.Unlock()
	if initialized && !waits {
		to.peer.Notify(method, params)
	}
	if initialized {
		return
	}
	for _, id := range ids {
		to.peer.Notify(method, transports.SetMeta(params, transports.MetaSubscriptionID, id))
	}
}

// A topic is the subject of a subscription: the URI of a resource, or a task.

// taskTopic begins the topic of a task, which is not a URI.
const taskTopic = "\x00task "

// TaskTopic returns the topic of a task, by the host's id.
func TaskTopic(id string) string { return taskTopic + id }

// TaskOf returns the task of a topic, by the host's id.
func TaskOf(topic string) (id string, ok bool) { return strings.CutPrefix(topic, taskTopic) }

// A Stream is a stream of notifications for a host of the stateless era (MCP 2026-07-28,
// "Subscriptions").
type Stream struct {
	ID      json.RawMessage // of the request, as it was sent
	Changes map[string]bool // the list_changed notifications that it wants
	URIs    map[string]bool
	Tasks   map[string]bool // by the host's ids
}

func (st Stream) topics() (all []string) {
	for uri := range st.URIs {
		all = append(all, uri)
	}
	for id := range st.Tasks {
		all = append(all, TaskTopic(id))
	}
	return all
}

// Covers reports whether a stream is subscribed to a resource.
func (st Stream) Covers(uri string) bool { return anyCovers(st.URIs, uri) }

// covers reports whether a subscription to one URI includes another: servers may announce parts of a
// subscribed resource (MCP, "Resources", subscriptions).
func covers(subscribed, uri string) bool {
	rest, ok := strings.CutPrefix(uri, subscribed)
	return ok && (rest == "" || strings.HasSuffix(subscribed, "/") || strings.ContainsRune("/?#", rune(rest[0])))
}

func anyCovers(subscribed map[string]bool, uri string) bool {
	for s := range subscribed {
		if covers(s, uri) {
			return true
		}
	}
	return false
}
