package sessions

import "sync"

// Limits of what a session keeps of results, so that many URIs do not use much memory.
const (
	maxLinks     = 1024     // URIs in each of the two generations
	maxLinkBytes = 64 << 10 // of those URIs
	maxLink      = 2048     // bytes of a URI; longer ones are data
	linkCost     = 100      // about what one needs besides, in bytes
)

// Links are the URIs in the results that a session got, each with the server of the newest result: its host
// may read them although no list has them. The oldest are forgotten.
type Links struct {
	mu       sync.Mutex
	now, old map[string]string // old is the content of now when it was full
	size     [2]int            // of both, in bytes
}

// Server returns the server of a URI, "" for an unknown URI.
func (l *Links) Server(uri string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if server, ok := l.now[uri]; ok {
		return server
	}
	return l.old[uri]
}

// Add adds a URI of a server, and reports whether more is kept than before.
func (l *Links) Add(uri, server string) (grown bool) {
	if uri == "" || len(uri) > maxLink {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.now[uri]
	if ok && known == server {
		return false
	}
	if len(l.now) >= maxLinks || l.size[0] > maxLinkBytes {
		l.old, l.now, l.size = l.now, nil, [2]int{0, l.size[0]}
	}
	if l.now == nil {
		l.now = map[string]string{}
	}
	if _, ok := l.now[uri]; !ok {
		l.size[0] += len(uri) + linkCost
	}
	l.now[uri] = server
	return true
}

// Forget removes all.
func (l *Links) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.old, l.size = nil, nil, [2]int{}
}

// kept returns how many bytes are kept.
func (l *Links) kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size[0] + l.size[1]
}

// maxUsers is how many users have links in each of two generations.
const maxUsers = 256

// UserLinks are the links of users whose requests are sessions of their own.
type UserLinks struct {
	mu       sync.Mutex
	now, old map[string]*Links
}

// Of returns the links of a user.
func (u *UserLinks) Of(user string) *Links {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.now[user]; l != nil {
		return l
	}
	if len(u.now) >= maxUsers {
		u.old, u.now = u.now, nil
	}
	if u.now == nil {
		u.now = map[string]*Links{}
	}
	l := u.old[user]
	if l == nil {
		l = &Links{}
	}
	u.now[user] = l
	return l
}
