package fleet

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A server may be called with what each user keeps for it: a login, values in its env or headers.
// Then each principal has an upstream of his own, and what its connection is opened with is that
// principal's. It never depends on the session that happened to be the first.

// PrincipalOf returns the principal that an upstream is for. ok is false for an upstream that others
// share.
func PrincipalOf(u *lazy.Upstream) (principal string, ok bool) {
	return strings.CutPrefix(u.Owner, PrincipalOwner)
}

// ListsTo returns the principal to whom alone an upstream lists, "" if others may see the same: a server
// that is called with what is a principal's may list what is for him.
func ListsTo(u *lazy.Upstream) string {
	if !u.Server.IsPersonal() {
		return ""
	}
	principal, _ := PrincipalOf(u)
	return principal
}

// entryPause is the time between looks at the values of a user. Another replica, or a verb, may have
// changed them.
const entryPause = 3 * time.Second

// Followers look at the values of users who have connections that were opened with them: one look for
// all connections of a user.
type Followers struct {
	mu sync.Mutex
	of map[string][]followed // by principal; each has a goroutine
}

// A followed is a connection that was opened with values of a user.
type followed struct {
	upstream *lazy.Upstream
	opened   schema.Server
	conn     *upstream.Conn
	retired  bool // and replaced by another
}

// followEntry replaces a connection when the values that it was opened with have changed. Calls in
// flight are answered first.
func (f *Fleet) followEntry(u *lazy.Upstream, opened schema.Server, conn *upstream.Conn) {
	if len(u.Server.UserValues()) == 0 || conn.Remote() { // the other replica follows it
		return
	}
	principal, _ := PrincipalOf(u)
	fs := &f.followers
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.of == nil {
		fs.of = map[string][]followed{}
	}
	fs.of[principal] = append(fs.of[principal], followed{upstream: u, opened: opened, conn: conn})
	if len(fs.of[principal]) == 1 && !f.Work.Go(func() { fs.follow(f, principal) }) {
		delete(fs.of, principal)
	}
}

// follow looks at the values of a principal until no connection is left that was opened with them.
func (fs *Followers) follow(f *Fleet, principal string) {
	for {
		select {
		case <-time.After(entryPause + rand.N(entryPause/3)):
		case <-f.Context.Done():
			return
		}
		open := fs.open(principal)
		if len(open) == 0 {
			return
		}
		fill := f.Run.Entries(principal)
		for _, one := range open {
			if one.conn.Err() == nil && hasChanged(fill, one) {
				f.Log.Info("a user has changed what he keeps for it", "upstream", one.upstream.Server.Name)
				one.upstream.Retire(one.conn)
				fs.retire(principal, one.conn)
			}
		}
	}
}

// open returns the connections of a principal that are open. If there are none, his goroutine ends.
func (fs *Followers) open(principal string) []followed {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.of[principal] = slices.DeleteFunc(fs.of[principal], func(one followed) bool { return one.retired || one.conn.Err() != nil })
	if len(fs.of[principal]) == 0 {
		delete(fs.of, principal)
	}
	return slices.Clone(fs.of[principal])
}

// retire notes that a connection is replaced. It is forgotten at the next look.
func (fs *Followers) retire(principal string, conn *upstream.Conn) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for i, one := range fs.of[principal] {
		if one.conn == conn {
			fs.of[principal][i].retired = true
		}
	}
}

// hasChanged reports whether an upstream would now be opened with other values. One that is missing
// has changed; a store that cannot be read says nothing.
func hasChanged(fill func(schema.Server) (schema.Server, error), one followed) bool {
	now, err := fill(one.upstream.Server)
	if err != nil {
		return isMissing(err)
	}
	return !maps.Equal(now.Env, one.opened.Env) || !maps.Equal(now.Headers, one.opened.Headers)
}

// isMissing reports whether a user has not, or no longer, what a server is called with.
func isMissing(err error) bool {
	failure, ok := errors.AsType[*transports.Failure](err)
	return ok && failure.Personal
}
