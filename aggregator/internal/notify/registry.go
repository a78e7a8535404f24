package notify

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// A Registry holds the connected sessions, and finds the recipients of upstreams' notifications. The
// cost of a log message or an update grows with its recipients, not with all sessions: a run
// over HTTP has thousands, and upstreams' readers call it.
type Registry[S any] struct {
	mu         sync.Mutex
	lastNumber int
	byID       map[string]*Recipient[S]
	all        []S // in order, immutable; nil after one joined or left
	groups     map[string]*group[S]
	users      map[string]set[S]      // no set is empty
	elicited   map[elicitation]set[S] // no set is empty
	exclusive  []*Recipient[S]        // immutable: every read of an upstream uses it
}

type set[S any] map[*Recipient[S]]bool

// A group is the set of sessions that use one server, or all servers, which is "".
type group[S any] struct {
	sessions    set[S]
	replicas    set[S]         // the sessions whose hosts are replicas
	users       map[string]int // how many sessions each has
	levels      levelUses
	subscribers map[string]map[*Recipient[S]]int // by topic: how often each is subscribed
	lengths     map[int]int                      // number of topics in subscribers, by length
}

// NewRegistry returns a registry without sessions.
func NewRegistry[S any]() *Registry[S] {
	return &Registry[S]{byID: map[string]*Recipient[S]{}, groups: map[string]*group[S]{}, users: map[string]set[S]{}, elicited: map[elicitation]set[S]{}}
}

// New returns the recipient of a new session. It is registered by Join.
func (r *Registry[S]) New(session S) *Recipient[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastNumber++
	return &Recipient[S]{
		ID: "session-" + strconv.Itoa(r.lastNumber), session: session, number: r.lastNumber, registry: r,
		streams: map[string]Stream{}, subscribed: map[string]bool{}, read: map[string]version{},
	}
}

// Get returns the session with an id.
func (r *Registry[S]) Get(id string) (s S, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.byID[id]; known != nil {
		return known.session, true
	}
	return s, false
}

// All returns the sessions in order of arrival. The slice must not be changed.
func (r *Registry[S]) All() []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = inOrder(slices.Collect(maps.Values(r.byID)), nil)
	}
	return r.all
}

// Exclusive returns the recipients whose host is the only one of its run. The slice must not be
// changed.
func (r *Registry[S]) Exclusive() []*Recipient[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exclusive
}

// inOrder returns sessions in order of arrival, without duplicates and, unless keep is nil, without
// those for which it reports false.
func inOrder[S any](all []*Recipient[S], keep func(S) bool) []S {
	slices.SortFunc(all, func(a, b *Recipient[S]) int { return cmp.Compare(a.number, b.number) })
	sessions := make([]S, 0, len(all))
	for _, to := range slices.Compact(all) {
		if keep == nil || keep(to.session) {
			sessions = append(sessions, to.session)
		}
	}
	return sessions
}

func (r *Registry[S]) groupLocked(server string) *group[S] {
	g := r.groups[server]
	if g == nil {
		g = &group[S]{sessions: set[S]{}, replicas: set[S]{}, users: map[string]int{}, subscribers: map[string]map[*Recipient[S]]int{}, lengths: map[int]int{}}
		r.groups[server] = g
	}
	return g
}

// groupsLocked returns the groups of sessions that use a server.
func (r *Registry[S]) groupsLocked(server string) (all []*group[S]) {
	for _, name := range [...]string{"", server} {
		if g := r.groups[name]; g != nil && (name != "" || len(all) == 0) {
			all = append(all, g)
		}
	}
	return all
}

// tidyLocked removes an empty group.
func (r *Registry[S]) tidyLocked(server string) {
	if g := r.groups[server]; len(g.sessions)+len(g.subscribers) == 0 && !g.levels.verbose().IsSet() {
		delete(r.groups, server)
	}
}

// setLevel counts a session that changes its level of log messages.
func (r *Registry[S]) setLevel(to *Recipient[S], before, now Level) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groupLocked(to.Server)
	g.levels.add(before, -1)
	g.levels.add(now, 1)
	r.tidyLocked(to.Server)
}

// subscribe counts one more subscription of a session.
func (r *Registry[S]) subscribe(to *Recipient[S], topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groupLocked(to.Server)
	if g.subscribers[topic] == nil {
		g.subscribers[topic] = map[*Recipient[S]]int{}
		g.lengths[len(topic)]++
	}
	g.subscribers[topic][to]++
}

func (r *Registry[S]) unsubscribe(to *Recipient[S], topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groupLocked(to.Server)
	of := g.subscribers[topic]
	if of[to]--; of[to] == 0 {
		delete(of, to)
	}
	if len(of) > 0 {
		return
	}
	delete(g.subscribers, topic)
	if g.lengths[len(topic)]--; g.lengths[len(topic)] == 0 {
		delete(g.lengths, len(topic))
	}
	r.tidyLocked(to.Server)
}

// IsSubscribed reports whether a session that uses a server, "" for any, is subscribed to
// a topic.
func (r *Registry[S]) IsSubscribed(server, topic string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, g := range r.groups {
		if (server == "" || name == "" || name == server) && len(g.subscribers[topic]) > 0 {
			return true
		}
	}
	return false
}

// The completion of an elicitation by URL is sent to the sessions whose hosts were asked.

const (
	// maxElicitations is how many are remembered per session; the oldest are dropped.
	maxElicitations = 64
	// maxElicitationID limits the length of remembered ids.
	maxElicitationID = 256
)

// An elicitation is identified by its server and id.
type elicitation struct{ server, id string }

// Elicited records that a server asks the session's host to visit a URL.
func (to *Recipient[S]) Elicited(server, id string) {
	r, e := to.registry, elicitation{server, id}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(id) > maxElicitationID || r.byID[to.ID] != to || slices.Contains(to.elicitations, e) {
		return
	}
	if len(to.elicitations) == maxElicitations {
		r.forgetLocked(to, to.elicitations[0])
		to.elicitations = slices.Delete(to.elicitations, 0, 1)
	}
	to.elicitations = append(to.elicitations, e)
	if r.elicited[e] == nil {
		r.elicited[e] = set[S]{}
	}
	r.elicited[e][to] = true
}

// forgetLocked reverses Elicited in the registry.
func (r *Registry[S]) forgetLocked(to *Recipient[S], e elicitation) {
	if delete(r.elicited[e], to); len(r.elicited[e]) == 0 {
		delete(r.elicited, e)
	}
}

// Elicited returns the sessions whose hosts the upstream has asked to visit a URL.
func (src Source[S]) Elicited(id string) []S {
	r := src.Registry
	r.mu.Lock()
	var all []*Recipient[S]
	for to := range r.elicited[elicitation{src.Server, id}] {
		all = append(all, to)
	}
	r.mu.Unlock()
	return inOrder(all, src.Sight.Sees)
}
