package notify

import (
	"maps"
	"slices"
)

// A Source is an upstream whose notifications go to the sessions that see it.
type Source[S any] struct {
	Registry *Registry[S]
	Server   string
	Owned    bool    // it is not shared by all sessions that use the server
	User     *string // its owner then; nil if unknown
	Session  string  // or the session that owns it
	Sight    Sight[S]
}

// Sight is what sessions can see.
type Sight[S any] interface {
	// Sees reports whether messages of the upstream may be for a session.
	Sees(S) bool
}

// recipients returns the sessions that may see the upstream.
func (src Source[S]) recipients() (all []*Recipient[S]) {
	r := src.Registry
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case src.User != nil:
		return slices.Collect(maps.Keys(r.users[*src.User]))
	case src.Session != "":
		if to := r.byID[src.Session]; to != nil {
			all = append(all, to)
		}
		return all
	}
	for _, g := range r.groupsLocked(src.Server) {
		all = slices.AppendSeq(all, maps.Keys(g.sessions))
	}
	return all
}

// Sessions returns the sessions that see the upstream, in order of arrival.
func (src Source[S]) Sessions() []S { return inOrder(src.recipients(), src.Sight.Sees) }

// Verbose returns the most verbose log level that they requested.
func (src Source[S]) Verbose() (verbose Level) {
	r := src.Registry
	if !src.Owned {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, g := range r.groupsLocked(src.Server) {
			verbose = verbose.or(g.levels.verbose())
		}
		return verbose
	}
	for _, to := range src.recipients() {
		if src.Sight.Sees(to.session) {
			verbose = verbose.or(to.Level())
		}
	}
	return verbose
}

// Subscribers returns the sessions that are subscribed to one of these topics, or to a resource
// that contains it.
func (src Source[S]) Subscribers(topics ...string) []S {
	var found []*Recipient[S]
	if src.Owned {
		for _, to := range src.recipients() {
			subscribed := to.topics()
			if slices.ContainsFunc(topics, func(topic string) bool { return anyCovers(subscribed, topic) }) {
				found = append(found, to)
			}
		}
		return inOrder(found, src.Sight.Sees)
	}
	r := src.Registry
	r.mu.Lock()
	for _, g := range r.groupsLocked(src.Server) {
		for _, topic := range topics {
			for n := range g.lengths {
				if n <= len(topic) && covers(topic[:n], topic) {
					found = slices.AppendSeq(found, maps.Keys(g.subscribers[topic[:n]]))
				}
			}
		}
	}
	r.mu.Unlock()
	return inOrder(found, src.Sight.Sees)
}

// Subscriptions returns the topics that have subscribers among the sessions which see the upstream,
// each with one of them.
func (src Source[S]) Subscriptions() map[string]S {
	all, subscribers := map[string]S{}, map[string][]*Recipient[S]{}
	if !src.Owned {
		r := src.Registry
		r.mu.Lock()
		for _, g := range r.groupsLocked(src.Server) {
			for topic, of := range g.subscribers {
				subscribers[topic] = slices.AppendSeq(subscribers[topic], maps.Keys(of))
			}
		}
		r.mu.Unlock()
	} else {
		for _, to := range src.recipients() {
			for topic := range to.topics() {
				subscribers[topic] = append(subscribers[topic], to)
			}
		}
	}
	for topic, of := range subscribers {
		if sessions := inOrder(of, src.Sight.Sees); len(sessions) > 0 {
			all[topic] = sessions[0]
		}
	}
	return all
}

// OfTask returns the sessions to notify of a user's task: those of the user, and those of replicas,
// which know the host that it is for.
func (src Source[S]) OfTask(user string) []S {
	r := src.Registry
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.users[user]))
	for _, g := range r.groupsLocked(src.Server) {
		all = slices.AppendSeq(all, maps.Keys(g.replicas))
	}
	r.mu.Unlock()
	return inOrder(all, src.Sight.Sees)
}

// Unsolicited returns the sessions for a message that answers nothing. In shared runs these are the
// sessions that are calling and, if the message is about the upstream, all; otherwise also those
// whose host is the only one. If there are several users, only sessions of calling users are
// included.
func (src Source[S]) Unsolicited(calling []*Recipient[S], aboutUpstream bool) []S {
	users := map[string]bool{}
	var all []*Recipient[S]
	for _, to := range calling {
		if users[to.User] = true; to.Shared {
			all = append(all, to)
		}
	}
	r := src.Registry
	r.mu.Lock()
	ofOne := r.isOfOneUserLocked(src.Server)
	switch {
	case !aboutUpstream:
		for _, to := range r.exclusive {
			if ofOne || users[to.User] {
				all = append(all, to)
			}
		}
	case ofOne:
		for _, g := range r.groupsLocked(src.Server) {
			all = slices.AppendSeq(all, maps.Keys(g.sessions))
		}
	default:
		for user := range users {
			all = slices.AppendSeq(all, maps.Keys(r.users[user]))
		}
	}
	r.mu.Unlock()
	return inOrder(all, src.Sight.Sees)
}

// isOfOneUserLocked reports whether all sessions that use a server belong to one user.
func (r *Registry[S]) isOfOneUserLocked(server string) bool {
	users := map[string]bool{}
	for _, g := range r.groupsLocked(server) {
		if len(g.users) > 1 {
			return false
		}
		for user := range g.users {
			users[user] = true
		}
	}
	return len(users) <= 1
}

// Replicas returns the sessions of replicas that use the server. only reports that there is one such
// session, and no other session.
func (src Source[S]) Replicas() (replicas []S, only bool) {
	r := src.Registry
	r.mu.Lock()
	var all []*Recipient[S]
	sessions := 0
	for _, g := range r.groupsLocked(src.Server) {
		sessions += len(g.sessions)
		all = slices.AppendSeq(all, maps.Keys(g.replicas))
	}
	r.mu.Unlock()
	return inOrder(all, nil), sessions == 1 && len(all) == 1
}
