package aggregator

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// An audience says which sessions hear what upstreams send unasked. What a log message or
// an update costs grows with those that hear it, and not with all sessions: a run over HTTP
// has thousands, and upstreams' readers ask.
type audience struct {
	mu    sync.Mutex
	about map[string]*circle              // by the server that the sessions are about, "" for all servers
	users map[principal]map[*session]bool // none is empty
	alone []*session                      // those whose host is the only one, never changed: every read of an upstream looks at them
}

// A circle is the sessions that are about the same, one server or all.
type circle struct {
	sessions    map[*session]bool
	replicas    map[*session]bool // of them those whose hosts are replicas
	principals  map[principal]int // how many sessions each has
	levels      levelUses
	subscribers map[string]map[*session]int
	lengths     map[int]int // of the URIs in subscribers: how many have it
}

// levelUses say, by severity, how many sessions asked for log messages of a level.
type levelUses [8]struct {
	sessions int
	params   json.RawMessage // of logging/setLevel, of one of them
}

func (all *levelUses) none() bool {
	for _, use := range all {
		if use.sessions > 0 {
			return false
		}
	}
	return true
}

func (a *audience) circleLocked(server string) *circle {
	if a.about == nil {
		a.about, a.users = map[string]*circle{}, map[principal]map[*session]bool{}
	}
	c := a.about[server]
	if c == nil {
		c = &circle{sessions: map[*session]bool{}, replicas: map[*session]bool{}, principals: map[principal]int{}, subscribers: map[string]map[*session]int{}, lengths: map[int]int{}}
		a.about[server] = c
	}
	return c
}

// circlesLocked returns the circles that hear a server.
func (a *audience) circlesLocked(server string) (all []*circle) {
	for _, name := range [...]string{"", server} {
		if c := a.about[name]; c != nil && (name != "" || len(all) == 0) {
			all = append(all, c)
		}
	}
	return all
}

func (a *audience) join(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.circleLocked(s.only)
	c.sessions[s] = true
	c.principals[s.principal]++
	if s.replica {
		c.replicas[s] = true
	}
	if a.users[s.principal] == nil {
		a.users[s.principal] = map[*session]bool{}
	}
	a.users[s.principal][s] = true
	if !s.shares {
		a.alone = append(slices.Clone(a.alone), s)
	}
}

// leave forgets a session, but not what it asked for.
func (a *audience) leave(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.circleLocked(s.only)
	if !c.sessions[s] {
		return
	}
	delete(c.sessions, s)
	delete(c.replicas, s)
	if c.principals[s.principal]--; c.principals[s.principal] == 0 {
		delete(c.principals, s.principal)
	}
	if delete(a.users[s.principal], s); len(a.users[s.principal]) == 0 {
		delete(a.users, s.principal)
	}
	if !s.shares {
		a.alone = slices.DeleteFunc(slices.Clone(a.alone), func(other *session) bool { return other == s })
	}
	a.tidyLocked(s.only)
}

// tidyLocked forgets a circle that nobody is in.
func (a *audience) tidyLocked(server string) {
	if c := a.about[server]; len(c.sessions)+len(c.subscribers) == 0 && c.levels.none() {
		delete(a.about, server)
	}
}

// setLevel says that a session asks for another level of log messages than before.
func (a *audience) setLevel(s *session, before, now logLevel) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.circleLocked(s.only)
	if before.params != nil {
		c.levels[before.severity].sessions--
	}
	if now.params != nil {
		c.levels[now.severity].sessions++
		c.levels[now.severity].params = now.params
	}
	a.tidyLocked(s.only)
}

// verbose returns the most verbose level that a session which hears a server asked for.
func (a *audience) verbose(server string) logLevel {
	a.mu.Lock()
	defer a.mu.Unlock()
	circles := a.circlesLocked(server)
	for severity := range levels {
		for _, c := range circles {
			if use := c.levels[severity]; use.sessions > 0 {
				return logLevel{use.params, severity}
			}
		}
	}
	return logLevel{}
}

// subscribe says that a session is subscribed to a resource once more.
func (a *audience) subscribe(s *session, uri string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.circleLocked(s.only)
	if c.subscribers[uri] == nil {
		c.subscribers[uri] = map[*session]int{}
		c.lengths[len(uri)]++
	}
	c.subscribers[uri][s]++
}

func (a *audience) unsubscribe(s *session, uri string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.circleLocked(s.only)
	of := c.subscribers[uri]
	if of[s]--; of[s] == 0 {
		delete(of, s)
	}
	if len(of) > 0 {
		return
	}
	delete(c.subscribers, uri)
	if c.lengths[len(uri)]--; c.lengths[len(uri)] == 0 {
		delete(c.lengths, len(uri))
	}
	a.tidyLocked(s.only)
}

// subscribers returns the sessions that hear a server and have subscribed to a resource,
// or to one that it is a part of.
func (a *audience) subscribers(server, uri string) map[*session]bool {
	found := map[*session]bool{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.circlesLocked(server) {
		for n := range c.lengths {
			if n > len(uri) || !covers(uri[:n], uri) {
				continue
			}
			for s := range c.subscribers[uri[:n]] {
				found[s] = true
			}
		}
	}
	return found
}

// isSubscribed reports whether a session that hears a server, "" for any, is subscribed to
// a resource.
func (a *audience) isSubscribed(server, uri string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, c := range a.about {
		if (server == "" || name == "" || name == server) && len(c.subscribers[uri]) > 0 {
			return true
		}
	}
	return false
}

// subscriptions returns what those sessions that hear a server are subscribed to of which
// sees holds, each with one of these.
func (a *audience) subscriptions(server string, sees func(*session) bool) map[string]*session {
	all := map[string]*session{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.circlesLocked(server) {
		for topic, of := range c.subscribers {
			for s := range of {
				if sees(s) {
					all[topic] = s
					break
				}
			}
		}
	}
	return all
}

// ofUser returns the sessions of a user.
func (a *audience) ofUser(p principal) []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.users[p]))
}

// of returns the sessions that hear a server.
func (a *audience) of(server string) (all []*session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.circlesLocked(server) {
		all = slices.AppendSeq(all, maps.Keys(c.sessions))
	}
	return all
}

// ofOnePrincipal reports whether no two sessions that hear a server are of different
// principals.
func (a *audience) ofOnePrincipal(server string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[principal]bool{}
	for _, c := range a.circlesLocked(server) {
		if len(c.principals) > 1 {
			return false
		}
		for p := range c.principals {
			all[p] = true
		}
	}
	return len(all) <= 1
}

// replicasOf returns the sessions of replicas that use a server. onlyOne is that nobody else
// hears it, and it is one.
func (a *audience) replicasOf(server string) (replicas []*session, onlyOne bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heard := 0
	for _, c := range a.circlesLocked(server) {
		heard += len(c.sessions)
		replicas = slices.AppendSeq(replicas, maps.Keys(c.replicas))
	}
	return replicas, heard == 1 && len(replicas) == 1
}

func (a *audience) aloneOnes() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.alone
}

// sessions returns those that see the upstream, in the order in which they came.
func (p *peer) sessions() []*session {
	var all []*session
	if user, ok := strings.CutPrefix(p.upstream.Owner, principalOwner); ok {
		all = p.agg.audience.ofUser(principal{user})
	} else if user := p.user.Load(); user != nil {
		all = p.agg.audience.ofUser(*user)
	} else if id, ok := strings.CutPrefix(p.upstream.Owner, sessionOwner); ok {
		if s := p.agg.sessions.get(id); s != nil {
			all = []*session{s}
		}
	} else {
		all = p.agg.audience.of(p.upstream.Server.Name)
	}
	return inOrder(slices.DeleteFunc(all, func(s *session) bool { return !s.sees(p.upstream) }))
}

// inOrder sorts sessions by when they came.
func inOrder(all []*session) []*session {
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.number, b.number) })
	return all
}

// verbose returns the most verbose level that one of the sessions which see the upstream
// asked for: what it is told, if it is told levels.
func (p *peer) verbose() (verbose logLevel) {
	if !p.isOfFew() {
		return p.agg.audience.verbose(p.upstream.Server.Name)
	}
	for _, s := range p.sessions() {
		if level := s.logLevel(); verbose.params == nil || level.params != nil && level.severity < verbose.severity {
			verbose = level
		}
	}
	return verbose
}

// subscribers returns the sessions that hear of a change of a resource.
func (p *peer) subscribers(uri string) []*session {
	if p.isOfFew() {
		return slices.DeleteFunc(p.sessions(), func(s *session) bool { return !anyCovers(s.topics(), uri) })
	}
	found := p.agg.audience.subscribers(p.upstream.Server.Name, uri)
	maps.DeleteFunc(found, func(s *session, _ bool) bool { return !s.sees(p.upstream) })
	return inOrder(slices.Collect(maps.Keys(found)))
}

// subscriptions returns what sessions that see the upstream are subscribed to, each with
// one of these.
func (p *peer) subscriptions() map[string]*session {
	if !p.isOfFew() {
		return p.agg.audience.subscriptions(p.upstream.Server.Name, func(s *session) bool { return s.sees(p.upstream) })
	}
	all := map[string]*session{}
	for _, s := range p.sessions() {
		for uri := range s.topics() {
			all[uri] = s
		}
	}
	return all
}

// audience returns the sessions that a message on a stream which is shared may be
// for: of what is about a task those of its user; of what is about the upstream all, or
// where they are of several principals those of the principals with a call in flight here;
// of all else those whose host is the only one, with the same exception, and of the others
// those with a call here. What a session or a user has alone tells that. A replica to which no others
// are is told all, and one of several of any task: it knows whom of its hosts that is for.
func (p *peer) audience(method string, params json.RawMessage, calls []*forwardedCall) []*session {
	if p.isPrivate() {
		return p.sessions()
	}
	a, server := &p.agg.audience, p.upstream.Server.Name
	replicas, onlyOne := a.replicasOf(server)
	if onlyOne {
		return replicas
	}
	if method == "notifications/tasks/status" {
		task, _ := wire.Text(wire.Get(params, "taskId"))
		user, _ := p.agg.taskUsers.get(server + "/" + task)
		return p.inOrderOnce(append(replicas, a.ofUser(user)...))
	}
	one, waiting := a.ofOnePrincipal(server), map[principal]bool{}
	var told []*session
	for _, c := range calls {
		if waiting[c.session.principal] = true; c.session.shares {
			told = append(told, c.session)
		}
	}
	switch {
	case !isAboutUpstream(method):
		told = append(told, slices.DeleteFunc(slices.Clone(a.aloneOnes()), func(s *session) bool { return !one && !waiting[s.principal] })...)
	case one:
		told = a.of(server)
	default:
		for user := range waiting {
			told = append(told, a.ofUser(user)...)
		}
	}
	return p.inOrderOnce(told)
}

// inOrderOnce returns the sessions that see the upstream, in order and each once.
func (p *peer) inOrderOnce(all []*session) []*session {
	return slices.Compact(inOrder(slices.DeleteFunc(all, func(s *session) bool { return !s.sees(p.upstream) })))
}
